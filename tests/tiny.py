"""A tiny chat model on disk: a real tokenizer and a random Llama, made in well under a second."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

__all__ = ["CHATML", "QWEN", "TRIMMED", "UNENDED", "tiny_model", "tiny_tokenizer"]

CHATML = """\
{% for message in messages %}{% if loop.first and message.role != 'system' %}<|im_start|>system
Be brief.<|im_end|>
{% endif %}<|im_start|>{{ message.role }}
{{ message.content + '<|im_end|>\n' }}{% endfor %}\
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Adds a system turn of its own."""

TRIMMED = """\
{% for message in messages %}{% if message.role == 'assistant' %}{{ ' ' + message.content | trim }}\
 <|im_end|>{% else %}[INST] {{ message.content | trim }} [/INST]{% endif %}{% endfor %}"""
"""Trims what is said, knows no generation prompt, and has a space before the end token."""

QWEN = """\
{% set last = namespace(user=-1) %}{% for message in messages %}{% if message.role == 'user' %}\
{% set last.user = loop.index0 %}{% endif %}{% endfor %}\
{% for message in messages %}{% set said = message.content %}<|im_start|>{{ message.role + '\n' }}\
{% if message.role == 'assistant' %}{% set said = said.split('</think>')[-1].lstrip('\n') %}\
{% if loop.index0 > last.user %}<think>
{{ message.content.split('</think>')[0].split('<think>')[-1].strip() if '</think>' in\
 message.content else '' }}
</think>

{% endif %}{% endif %}{{ said + '<|im_end|>\n' }}{% endfor %}\
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Drops the reasoning of earlier turns; the last has some, empty where there is none."""

UNENDED = """\
{% for message in messages %}<|im_start|>{{ message.role + '\n' + message.content + '\n' }}\
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Ends no turn."""

_LEARNT = [
    "the cat sat on the mat and the dog ran to the door while it rained all day",
    "Question: what is it? Answer: nothing much, and then some more of the same.\n\n\n\n",
    "user system assistant    ",
]


def tiny_tokenizer(folder: Path, template: str = CHATML, *, trim_offsets: bool = False) -> Path:
    """A byte-level tokenizer in the Hugging Face layout at `folder`."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_LEARNT * 3, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        chat_template=template,
    ).save_pretrained(folder)
    return folder


def tiny_model(folder: Path, template: str = CHATML) -> Path:
    """A tokenizer as above and a random Llama of 2 layers that fits it, at `folder`."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tiny_tokenizer(folder, template)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
