"""Chat loop: a batch of helpdesk conversations, each turn adds a user message and a decoded answer."""
import argparse
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import GPT2Config, GPT2LMHeadModel

VOCAB = 8192
SESSIONS = 48
CONTEXT = 1024
REPLY = 32


def user_message(generator, length=24):
    return torch.randint(10, VOCAB, (SESSIONS, length), generator=generator).to("cuda")


def pick(logits, temperature=0.8):
    probs = torch.softmax(logits.float() / temperature, dim=-1)
    return torch.multinomial(probs, 1)


@torch.inference_mode()
def answer(model, history, stamps):
    for _ in range(REPLY):
        start = time.perf_counter()
        out = model(input_ids=history, use_cache=False)
        token = pick(out.logits[:, -1])
        history = torch.cat([history, token], dim=1)
        stream(token)
        stamps.append(time.perf_counter() - start)
    return history


@torch.inference_mode()
def answer_cached(model, history, stamps):
    past, inputs = None, history
    for _ in range(REPLY):
        start = time.perf_counter()
        out = model(input_ids=inputs, past_key_values=past, use_cache=True)
        past = out.past_key_values
        inputs = pick(out.logits[:, -1])
        history = torch.cat([history, inputs], dim=1)
        stream(inputs)
        stamps.append(time.perf_counter() - start)
    return history


def stream(token):
    """Hand the newest piece of every session to its web socket."""
    return ["<%d>" % t for t in token.squeeze(1).tolist()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(2)
    config = GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=768, n_layer=8, n_head=12,
                        activation_function="gelu_pytorch_tanh", bos_token_id=1, eos_token_id=2)
    model = GPT2LMHeadModel(config).to("cuda", torch.bfloat16).eval()
    reply = answer_cached if opt.fixed else answer

    def opening():
        return torch.cat([user_message(generator, 640), user_message(generator)], dim=1)

    reply(model, opening(), [])
    torch.cuda.synchronize()

    stamps, turns = [], 0
    history = opening()
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        history = reply(model, history, stamps)
        turns += 1
        if history.shape[1] + 24 + REPLY > CONTEXT:
            history = opening()
        else:
            history = torch.cat([history, user_message(generator)], dim=1)
    print(f"{turns} turns, {len(stamps) * SESSIONS} tokens")
    print(f"round_ms {1000 * statistics.median(stamps):.3f}")


if __name__ == "__main__":
    main()
