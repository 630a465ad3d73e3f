"""Whole answers of the decoder of gpt2.py in PyTorch: with a CUDA graph for each token, and by Hugging Face's generate.

    python3 generate_peers.py tokens FILE.json     writes the tokens of all answers; without a GPU, too
    python3 generate_peers.py answer SIDE          one answer, for what torch.compile keeps for the next time
"""
import functools
import json
import sys

import torch

from gpt2 import ANSWER, BEAMS, DEPTH, HEADS, LAYERS, POSITIONS, PROMPT, WIDTH, WORDS, prompt, weights

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Peer:
    """The decoder in PyTorch, with caches of a fixed length, a row for each beam, and a CUDA graph for each token."""

    def __init__(self, dtype, beams):
        self.length, self.rows = PROMPT + ANSWER, max(beams, 1)
        self.w = {name: torch.from_numpy(w).to(DEVICE, dtype) for name, w in weights()}
        self.caches = torch.zeros(LAYERS, 2, self.rows, HEADS, self.length, DEPTH, device=DEVICE, dtype=dtype)
        self.ids = torch.zeros(self.rows, 1, dtype=torch.long, device=DEVICE)
        self.at = torch.zeros(1, dtype=torch.long, device=DEVICE)
        self.tokens = torch.zeros(self.rows, self.length + 1, dtype=torch.long, device=DEVICE)
        self.every = torch.arange(self.length, device=DEVICE)

    def forward(self, ids, at):
        """The logits of the tokens behind ids, which stand at the places `at`."""
        f, w, n = torch.nn.functional, self.w, ids.shape[1]
        seen = (self.every[None, :] <= at[:, None])[None, None]
        x = w["words"][ids] + w["places"][at]
        for i in range(LAYERS):
            y = f.layer_norm(x, (WIDTH,)) @ w[f"qkv{i}"] + w[f"qkv_bias{i}"]
            q, k, v = (p.view(self.rows, n, HEADS, DEPTH).transpose(1, 2) for p in y.split(WIDTH, 2))
            self.caches[i, 0].index_copy_(2, at, k)
            self.caches[i, 1].index_copy_(2, at, v)
            y = f.scaled_dot_product_attention(q, self.caches[i, 0], self.caches[i, 1], attn_mask=seen)
            x = x + y.transpose(1, 2).reshape(self.rows, n, WIDTH) @ w[f"out{i}"] + w[f"out_bias{i}"]
            y = f.gelu(f.layer_norm(x, (WIDTH,)) @ w[f"up{i}"] + w[f"up_bias{i}"], approximate="tanh")
            x = x + y @ w[f"down{i}"] + w[f"down_bias{i}"]
        return f.layer_norm(x[:, -1:], (WIDTH,)) @ w["words"].T

    def choose(self, logits):
        self.ids.copy_(logits.argmax(-1))

    def step(self):
        self.choose(self.forward(self.ids, self.at))
        self.at += 1
        self.tokens.index_copy_(1, self.at, self.ids)

    def recorded(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.at.zero_()
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph

    def record(self):
        self.graphs = [self.recorded()]

    def answer(self, tokens):
        ids = torch.tensor([tokens] * self.rows, device=DEVICE)
        self.begin()
        self.choose(self.forward(ids, self.every[: len(tokens)]))
        self.at.fill_(len(tokens))
        self.tokens.index_copy_(1, self.at, self.ids)
        for i in range(ANSWER - 1):
            self.next(i)
        return tokens + self.tokens[0, len(tokens) : self.length].tolist()

    def next(self, i):
        self.graphs[i % len(self.graphs)].replay()

    def begin(self):
        pass


class BeamPeer(Peer):
    """Of all answers with a token behind them the best go on. The caches' rows are copied to where they do, from one of
    two sets of caches to the other, so that there are two graphs."""

    def __init__(self, dtype, beams):
        super().__init__(dtype, beams)
        self.sets = [self.caches, torch.zeros_like(self.caches)]
        self.scores = torch.zeros(beams, 1, device=DEVICE)
        self.initial = torch.tensor([[0.0]] + [[-1e30]] * (beams - 1), device=DEVICE)

    def choose(self, logits):
        scores = self.scores + torch.log_softmax(logits[:, 0].float(), -1)
        best, at = scores.view(-1).topk(self.rows)
        rows = at // WORDS
        self.scores.copy_(best[:, None])
        self.ids.copy_((at % WORDS)[:, None])
        self.tokens.copy_(self.tokens[rows])
        other = self.sets[1 if self.caches is self.sets[0] else 0]
        torch.index_select(self.caches, 2, rows, out=other)

    def record(self):
        self.graphs = []
        for self.caches in (self.sets[1], self.sets[0]):
            self.graphs.append(self.recorded())

    def begin(self):
        self.caches = self.sets[0]
        self.scores.copy_(self.initial)


class HuggingFace:
    """Hugging Face's GPT-2 with the same weights and a cache of a fixed length. A greedy search compiles by itself what
    a token takes; one with beams does not, and so `compiled` does it here."""

    def __init__(self, dtype, beams, compiled=False):
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(vocab_size=WORDS, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
                            bos_token_id=None, eos_token_id=None)
        with torch.device(DEVICE):
            model = GPT2LMHeadModel(config).eval()
        w = dict(weights())

        def take(theirs, ours):
            model.transformer.get_parameter(theirs).copy_(torch.from_numpy(w[ours]))

        take("wte.weight", "words"), take("wpe.weight", "places")
        for i in range(LAYERS):
            for theirs, ours in (("attn.c_attn", "qkv"), ("attn.c_proj", "out"), ("mlp.c_fc", "up"),
                                 ("mlp.c_proj", "down")):
                take(f"h.{i}.{theirs}.weight", f"{ours}{i}"), take(f"h.{i}.{theirs}.bias", f"{ours}_bias{i}")
        self.model = model.to(dtype)
        if compiled:
            self.compile()
        self.options = {"max_new_tokens": ANSWER, "min_new_tokens": ANSWER, "do_sample": False,
                        "num_beams": max(beams, 1), "pad_token_id": 0, "cache_implementation": "static"}

    def compile(self):
        eager = self.model.forward
        fast = torch.compile(eager, mode="reduce-overhead")

        @functools.wraps(eager)
        def forward(*args, **others):
            one = others["input_ids"].shape[1] == 1
            return (fast if one else eager)(*args, **others)

        self.model.forward = forward

    def record(self):
        pass

    def answer(self, tokens):
        ids = torch.tensor([tokens], device=DEVICE)
        return self.model.generate(ids, attention_mask=torch.ones_like(ids), **self.options)[0].tolist()


# The sides by the beginnings of their names, and with how many beams they are asked.
PEERS = {
    "pytorch": (lambda dtype, beams: (BeamPeer if beams else Peer)(dtype, beams), (0, BEAMS)),
    "huggingface": (HuggingFace, (0,)),
    "huggingface_compiled": (functools.partial(HuggingFace, compiled=True), (BEAMS,)),
    "huggingface_eager": (HuggingFace, (BEAMS,)),
}


def names():
    """The names of all sides: pytorch.float32, pytorch.float32.beam4 and so on."""
    return [f"{kind}.{dtype}" + (f".beam{beams}" if beams else "")
            for kind, (_, asked) in PEERS.items() for beams in asked for dtype in ("float32", "float16")]


def made(name):
    """The side of that name."""
    kind, dtype, *beams = name.split(".")
    peer = PEERS[kind][0](getattr(torch, dtype), BEAMS if beams else 0)
    peer.record()
    return peer


def write_tokens(path):
    """The tokens of all answers, and how clear their choices are."""
    found = {}
    with torch.no_grad():
        for beams in (0, BEAMS):
            peer = (BeamPeer if beams else Peer)(torch.float32, beams)
            gaps, choose = [], peer.choose

            def watched(logits):
                scores = torch.log_softmax(logits[:, 0].float(), -1)
                best = ((peer.scores if beams else 0) + scores).view(-1).topk(peer.rows + 1)[0]
                gaps.append((best[:-1] - best[1:]).min().item())
                choose(logits)

            peer.choose = watched

            def advance(i):
                if beams:
                    peer.caches = peer.sets[(i + 1) % 2]
                peer.step()

            peer.next = advance
            ours = peer.answer(prompt())
            theirs = HuggingFace(torch.float32, beams).answer(prompt())
            print(f"{beams or 1} beams: {len(set(ours[PROMPT:]))} tokens of {ANSWER} differ, the closest choice is by "
                  f"{min(gaps):.2g}, {sum(a == b for a, b in zip(ours[PROMPT:], theirs[PROMPT:]))} as Hugging Face")
            found[f"beam{beams}" if beams else "greedy"] = ours
    with open(path, "w") as f:
        json.dump(found, f)


def main():
    if sys.argv[1] == "tokens":
        write_tokens(sys.argv[2])
    else:
        with torch.no_grad():
            print(sys.argv[2], made(sys.argv[2]).answer(prompt())[PROMPT:][:8])


if __name__ == "__main__":
    main()
