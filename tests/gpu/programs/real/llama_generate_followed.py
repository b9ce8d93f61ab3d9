"""Llama with the change of its first finding: an attention that needs no plan."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=8192, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8, pad_token_id=0
)
torch.backends.cuda.enable_cudnn_sdp(False)
torch.manual_seed(0)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
prompt = torch.randint(1, config.vocab_size, (1, 32), device="cuda")
print(model.generate(prompt, max_new_tokens=64, min_new_tokens=64, do_sample=False).shape)
