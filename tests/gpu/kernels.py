"""The fused CUDA kernels against the definition: `python -m tests.gpu.kernels --out docs/gpu.json` (make test-gpu).

For each mask, bias, grouping and dtype: values and gradients of `forward` may be at most twice as far from the truth
(the definition in float64) as the unfused definition in the same dtype, plus rounding.
It needs a CUDA device and no pytest.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.attention import (
    ALiBi,
    Attention,
    Axial,
    Bias,
    BigBird,
    Blocks,
    Buckets,
    Causal,
    Documents,
    Everything,
    Fixed,
    Given,
    Local,
    Local2D,
    Longformer,
    Mask,
    MultiHead,
    Padding,
    Prefix,
    Rotary,
    Strided,
    Table,
    Window,
)  # fmt: skip
from heedful.attention.kv_cache import FixedMemory
from heedful.attention.masks import sparse
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms import Dot, General, Mechanism, Scaled, Softmax
from heedful.attention.sight import Sight
from heedful.decoding.generate import generate
from heedful.engines import decode_kernel
from heedful.engines.cuda_graphs import Graphs
from heedful.engines.decode_kernel import DecodeAttention, DecodeKernel
from heedful.looking import look
from heedful.models import build
from heedful.models.encoder_call import encoder_output

B, H, D = 2, 4, 64
PARTS = ("out", "q", "k", "v", "own", "own", "own")
ROUNDINGS = 8  # of a sum's largest value, that a kernel may be from the truth
ROUNDING = 5e-7  # of the largest value, four float32 roundings: what any order of summing may cost


def masks(length: int, device: torch.device) -> dict[str, Mask]:
    half = length // 2
    lengths = torch.tensor([length, half + 3], device=device)
    ids = (torch.arange(length, device=device) // 100).expand(B, -1)
    given = torch.rand(B, H, length, length, device=device) < 0.5
    given[..., 0] = True
    return {
        "everything": Everything(),
        "causal": Causal(),
        "window": Window(100),
        "strided": Causal() & Strided(H, 32),
        "axial": Axial(H, 32),
        "fixed": Causal() & Fixed(64, 4),
        "longformer": Longformer(100, 3),
        "bigbird": BigBird(64),
        "local": Causal() & Local(64),
        "local in two dimensions": Local2D(8, row=32),
        "causal window": Causal() & Window(100),
        "padding": Padding(lengths),
        "padding, one empty": Padding(torch.tensor([length, 0], device=device)),
        "causal padding": Causal() & Padding(lengths),
        "prefix": Causal() | Prefix(77),
        "documents": Causal() & Documents(ids),
        "blocks": Blocks(64),
        "given": Given(given),
        "not window": ~Window(5),
    }


def biases(device: torch.device, length: int) -> dict[str, Bias | None]:
    return {
        "none": None,
        "alibi": ALiBi(H).to(device),
        "buckets": Buckets(H).to(device),
        "table": Table(H, (length // 8, 8)).to(device),
    }


def cases(mask_name: str, device: torch.device) -> Iterator[tuple[str, Mechanism, Mask, Bias | None, int, int]]:
    """A mask with everything where it is short; where it is long, and flex compiles, by itself, some with each bias.

    Of two long lengths the first has a kernel of its own, the second one for any length.
    """
    for length in (200, 1152, 1300):
        mask = masks(length, device)[mask_name]
        few = length > 200 and mask_name not in ("everything", "causal window", "padding, one empty")
        for bias_name, bias in biases(device, length).items():
            for groups in (H, 1) if bias is None else (H,):
                if not few or (bias is None and groups == H):
                    name = f"softmax, {mask_name}, bias {bias_name}, {groups} groups, T {length}"
                    yield name, Softmax(), mask, bias, groups, length
        others = (Dot(), Scaled(2.0), General(H, D).to(device)) if mask_name == "window" else ()
        for mechanism in others:
            name = f"{type(mechanism).__name__.lower()}, causal window, T {length}"
            yield name, mechanism, Causal() & Window(100), None, H, length


def run(mechanism: Mechanism, fused: bool, inputs: list[Tensor], sight: Sight, there: Tensor | int = 1) -> list[Tensor]:
    """The output and the gradients of q, k, v, of the mechanism and of the bias, for a loss over the rows there are."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    q, k, v = leaves
    out = mechanism(q, k, v, sight) if fused else mechanism.weights(q, k, sight) @ repeat_kv(v, H)
    owners = [*mechanism.parameters(), *(sight.bias.parameters() if sight.bias else ())]
    probe = torch.linspace(-1, 1, out.numel(), device=out.device, dtype=out.dtype).view_as(out) * there
    return [out.detach(), *torch.autograd.grad(out, [*leaves, *owners], probe)]


def measure(
    case: tuple[str, Mechanism, Mask, Bias | None, int, int], dtype: torch.dtype, device: torch.device
) -> dict[str, object]:
    name, mechanism, mask, bias, groups, length = case
    torch.manual_seed(0)
    shape = (B, groups, length, D)
    inputs = [torch.randn(s, device=device).to(dtype) for s in ((B, H, length, D), shape, shape)]

    def sight(exact: bool) -> Sight:
        rows = torch.arange(length, device=device)[None]
        added = copy.deepcopy(bias).double() if exact and bias is not None else bias
        return Sight(mask, rows, rows, B, added, counted=True)

    truth = run(copy.deepcopy(mechanism).double(), False, [x.double() for x in inputs], sight(True))
    unfused, fused = run(mechanism, False, inputs, sight(False)), run(mechanism, True, inputs, sight(False))
    worst, where = 0.0, ""
    for part, exact, slow, fast in zip(PARTS, truth, unfused, fused, strict=False):
        ratio = error(fast, exact) / (error(slow, exact) + ROUNDING * float(exact.abs().max()) + 1e-30)
        if ratio > worst:
            worst, where = ratio, part
    kernel = "causal flag" if sight(False).is_causal else "flex" if sight(False).pays_in_blocks else "sdpa"
    return {
        "case": name,
        "dtype": str(dtype),
        "kernel": kernel,
        "times_unfused_error": round(worst, 3),
        "in": where,
        "holds": worst <= 2,
    }


def told(device: torch.device) -> Iterator[dict[str, object]]:
    """Padding before, behind and between, in long sequences that are told by positions; and no T x T tensor for it.

    Beside the main stream, where graphs are made ready, positions are not asked, and the mask is told pair by pair.
    """
    length, here = 1300, torch.arange(1300, device=device)
    places = {"before": here - 300, "behind": torch.where(here < 1000, here, -1)}
    places["between"] = torch.where(here % 13 == 5, -1, here - (here + 8) // 13)
    for padding, name, beside in itertools.product(
        places, ("everything", "causal", "window", "strided"), (False, True)
    ):
        torch.manual_seed(0)
        inputs = [torch.randn(B, H, length, D, device=device) for _ in range(3)]
        mask, at = masks(length, device)[name], torch.stack((here, places[padding].clamp(min=-1)))
        there = (at >= 0)[:, None, :, None]  # what padding sees is nobody's business
        with torch.cuda.stream(torch.cuda.Stream() if beside else torch.cuda.current_stream()):
            made = run(Softmax(), True, inputs, mask.over(inputs[0][:, 0], positions=at), there)
            slow = run(Softmax(), False, inputs, Sight(mask, at, at, B), there)
            truth = run(Softmax(), False, [x.double() for x in inputs], Sight(mask, at, at, B), there)
            torch.cuda.synchronize()
        ratio = max(
            error(fast * there, exact * there)
            / (error(one * there, exact * there) + ROUNDING * float(exact.abs().max()))
            for fast, one, exact in zip(made, slow, truth, strict=True)
        )
        case = f"padding {padding}, {name}{', beside the main stream' * beside}"
        yield {"case": case, "dtype": "torch.float32", "times_unfused_error": round(ratio, 3), "holds": ratio <= 2}
    length = 32768
    at = (torch.arange(length, device=device) - torch.tensor([[0], [99]], device=device)).clamp(min=-1)
    q, k, v = (torch.randn(B, 1, length, 16, device=device, dtype=torch.bfloat16) for _ in range(3))
    for beside in (False, True):
        with torch.cuda.stream(torch.cuda.Stream() if beside else torch.cuda.current_stream()):
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            Softmax()(q, k, v, Window(64).over(q[:, 0], positions=at))
            torch.cuda.synchronize()
        most = torch.cuda.max_memory_allocated() - before
        case = f"no T x T tensor for positions{' beside the main stream' * beside}"
        yield {"case": case, "bytes": most, "holds": most < B * length * length}


def error(made: Tensor, exact: Tensor) -> float:
    """The largest error; not a number counts as infinite."""
    gap = float((made - exact).abs().max())
    return gap if gap == gap else float("inf")


def compilations(device: torch.device) -> list[dict[str, object]]:
    """A forward with a new sight of the same kind compiles nothing anew, nor does a third length."""
    counters = torch._dynamo.utils.counters
    torch.compiler.reset()
    counters.clear()
    model = build("transformer", size="tiny", vocab=50, length=2048, mechanism="window(size=64)").to(device)
    made = []
    for length in (1152, 1300, 1152, 1033, 2000):
        source, target = (torch.randint(4, 50, (2, length), device=device) for _ in range(2))
        source[1, int(torch.randint(2, 1000, ())) :] = 0
        model(source, target).sum().backward()
        made.append(counters["stats"]["unique_graphs"])
    case = "a new sight of the same kind compiles nothing anew"
    return [{"case": case, "graphs": made, "holds": made[1] == made[-1]}]


def bits(device: torch.device) -> list[dict[str, object]]:
    """Looking changes no bit on the GPU either."""
    rows: list[dict[str, object]] = []
    for word in ("softmax", "window(size=64)", "general", "additive"):
        for dtype in (torch.float32, torch.bfloat16):
            length = 64 if word == "additive" else 1152
            model = build("transformer", size="tiny", vocab=50, length=2048, mechanism=word).to(device, dtype).eval()
            source, target = (torch.randint(4, 50, (2, length), device=device) for _ in range(2))
            source[1, length // 2 :] = 0
            with torch.no_grad():
                before = model(source, target)
                with look(model) as seen:
                    during = model(source, target)
            holds = torch.equal(before, during) and len(seen.paths) == 12
            rows.append({"case": f"looking changes no bit, {word}", "dtype": str(dtype), "holds": holds})
    return rows


def recalls(device: torch.device) -> Iterator[dict[str, object]]:
    """The kernel of the newest token against the definition, whoever shares keys and wherever padding stands."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for groups, width, before, padded, turned in itertools.product(
            (H, 2, 1), (64, 80, 256, 16), (1, 63, 200), (False, True), (False, True)
        ):
            torch.manual_seed(0)
            project = MultiHead(1, H, groups, width, width, Rotary() if turned else None)
            project.to_qkv = nn.Identity()  # so that states are queries, keys and values
            memory, exact, mechanism = FixedMemory(256), FixedMemory(256), Softmax()
            start = torch.tensor([0, before // 2], device=device)[:, None] * padded
            positions = (torch.arange(before, device=device)[None] - start).clamp(min=-1)
            past, x = (torch.randn(B, n, (H + 2 * groups) * width, device=device).to(dtype) for n in (before, 1))
            with torch.no_grad():
                for kept, kind in ((memory, dtype), (exact, torch.float64)):
                    sight = kept.sight(Causal(), past, None, positions if padded else None)
                    kept.keep(mechanism, *(one.to(kind) for one in project(past, sight)[1:]))
                    sight = kept.sight(Causal(), x)
                    if kind is dtype:
                        attention = DecodeKernel().runner(Attention(project, mechanism, nn.Identity()))
                        if type(attention) is not DecodeAttention or not decode_kernel.serves(project, x, sight, kept):
                            raise AssertionError("the kernel does not serve what it should")
                        made = decode_kernel.look(project, mechanism, x, kept)
                truth = mechanism.recall(*(one.double() for one in project(x, sight)), sight, exact)
            rounding = torch.finfo(dtype).eps
            ratio = error(made, truth) / (rounding * float(truth.abs().max()))
            pairs = zip(memory.slots[mechanism, 1], exact.slots[mechanism, 1], strict=True)
            same = all(error(written, true) <= rounding * float(true.abs().max()) for written, true in pairs)
            case = f"the newest token, {groups} groups of {width}, {before} before it, {'un' * (not padded)}padded"
            yield {
                "case": case + ", turned" * turned,
                "dtype": str(dtype),
                "roundings": round(ratio, 2),
                "holds": ratio <= ROUNDINGS * max(1.0, width / 128) and same,
            }


def captures(device: torch.device) -> list[dict[str, object]]:
    """Captured and compiled steps write what called ones write, greedily and by chance, to prompts of any length."""
    rows: list[dict[str, object]] = []
    for family, more in (("gpt", {}), ("llama", {"groups": 2, "hidden": 128})):
        torch.manual_seed(0)
        model = build(family, vocab=301, width=64, heads=4, depth=3, length=256, end=None, **more).to(device).eval()
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(3.0 if weight.dim() > 1 else 1.0)
        for prompts in ([[5, 6, 7], [8], [9, 10]], [[5, 6, 7, 8]]):
            for way in ({}, {"temperature": 1.0, "top_k": 40}, {"temperature": 1.0, "repetition_penalty": 1.3}):
                called = generate(model, prompts, 150, **way)
                for steps in ("captured", "captured", "compiled"):  # made anew, and taken again
                    holds = generate(model, prompts, 150, steps=steps, **way) == called
                    case = f"{steps} steps of {family}, {len(prompts)} prompts, {way}"
                    rows.append({"case": case, "dtype": "torch.float32", "holds": holds})
    return rows


def learns(device: torch.device) -> list[dict[str, object]]:
    """A captured step of an encoder has the gradients of a called one, also where letters are read, and by members."""
    rows: list[dict[str, object]] = []
    for letters, members in itertools.product((0, 50), (1, 3)):
        torch.manual_seed(0)
        given = {"vocab": 60, "width": 64, "heads": 4, "length": 32, "classes": 2}
        given |= {"bias": "buckets", "position": "none", "letters": letters, "members": members}
        model = build("bert", output="classes(pool='mean')", **given).to(device)
        lengths = torch.randint(4, 33, (192,), device=device)
        tokens = torch.randint(4, 60, (192, 32), device=device) * (torch.arange(32, device=device) < lengths[:, None])
        batch = {"tokens": tokens, "segments": torch.zeros_like(tokens), "lengths": lengths, "answer": tokens[:, 0] % 2}
        if letters:
            batch["letters"] = torch.randint(0, letters + 1, (192, 32, 24), device=device) * (tokens > 0)[..., None]

        def losses(batch: dict[str, Tensor], model: nn.Module = model) -> tuple[Tensor, Tensor, Tensor]:
            said = encoder_output(model, batch)
            total = nn.functional.cross_entropy(said, batch["answer"], reduction="sum")
            return total, torch.tensor(len(said)), torch.zeros(2, 0)

        losses(batch)[0].backward()
        called = [weight.grad for weight in model.parameters() if weight.grad is not None]
        step = Graphs(model, losses, lambda loss: loss.backward())
        for again in ("first", "again"):
            model.zero_grad(set_to_none=False)
            step(batch)
            made = [weight.grad for weight in model.parameters() if weight.grad is not None]
            gap = max(error(one, true) / float(true.abs().max()) for one, true in zip(made, called, strict=True))
            case = f"a captured step, {letters} letters, {members} members, {again}"
            rows.append({"case": case, "dtype": "torch.float32", "error": gap, "holds": gap <= 1e-5})
    return rows


ALONE = {
    "told": told,
    "learns": learns,
    "compilations": compilations,
    "bits": bits,
    "recalls": recalls,
    "captures": captures,
}


def rows_of(part: str) -> list[dict[str, object]]:
    """What one of ALONE, or a mask in both precisions, comes to."""
    device = torch.device("cuda")
    sparse.FEW = 0  # summaries of fixed attention are gathered here as in sequences too long for the definition
    if part in ALONE:
        return list(ALONE[part](device))
    return [measure(case, dtype, device) for dtype in (torch.float32, torch.bfloat16) for case in cases(part, device)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--jobs", type=int, default=min(12, os.cpu_count() or 1), help="processes: compiling takes most"
    )
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("make test-gpu needs a CUDA device, and none is found")
    rows: list[dict[str, object]] = []
    parts = [*ALONE, *masks(8, torch.device("cpu"))]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for part, made in zip(parts, pool.map(rows_of, parts), strict=True):
            failed = [row for row in made if not row["holds"]]
            print(f"{part}: {len(made)} cases, {len(failed)} failed", *failed, sep="\n  ", flush=True)
            rows += made
    told = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cases": len(rows),
        "failed": sum(not row["holds"] for row in rows),
        "rows": rows,
    }
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{told['cases']} cases, {told['failed']} failed")
    sys.exit(bool(told["failed"]))


if __name__ == "__main__":
    main()
