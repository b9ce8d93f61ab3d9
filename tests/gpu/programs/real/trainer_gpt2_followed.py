"""The Trainer with the change of its first finding: steps compiled with CUDA graphs."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

CONFIG = GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=8192, n_positions=256)


class Tokens(torch.utils.data.Dataset):
    """Random sequences."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(index)
        tokens = torch.randint(0, CONFIG.vocab_size, (256,))
        return {"input_ids": tokens, "labels": tokens}


with tempfile.TemporaryDirectory() as directory:
    arguments = TrainingArguments(
        directory,
        max_steps=40,
        per_device_train_batch_size=8,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        bf16=True,
        torch_compile=True,
        torch_compile_mode="reduce-overhead",
    )
    Trainer(GPT2LMHeadModel(CONFIG), arguments, train_dataset=Tokens()).train()
