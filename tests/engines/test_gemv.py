"""One row times a matrix: torch's product, in one order of summing; and torch's own where nothing could be compiled."""

import stat
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import linear

from heedful.engines import gemv, runner


@pytest.fixture
def anew(monkeypatch, tmp_path):
    """Nothing compiled yet, and an empty folder to keep it in; afterwards what was known is asked for again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    yield tmp_path / "heedful"
    forget()


def forget() -> None:
    gemv.load_library.cache_clear()
    gemv.working.cache_clear()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 70), st.integers(1, 40), st.booleans(), st.integers(0, 99), st.sampled_from(["float32", "float16"])
)
def test_it_is_the_product(rows, steps, bias, seed, name):
    torch.manual_seed(seed)
    matrix, x = torch.randn(rows, gemv.STEP * steps).to(getattr(torch, name)), torch.randn(1, 1, gemv.STEP * steps)
    product = gemv.of(matrix)
    assert product is not None, "there is a compiler, and yet no product"
    beside = torch.randn(rows) if bias else None
    expected = linear(x.double(), matrix.double(), None if beside is None else beside.double())
    torch.testing.assert_close(product(x, beside).double(), expected, rtol=1e-5, atol=1e-4)


def test_a_row_of_another_length_is_not_read_beyond_its_end():
    product = gemv.of(torch.randn(3, 64))
    with pytest.raises(ValueError, match="a row of 48 numbers cannot be multiplied by a matrix of 64 columns"):
        product(torch.randn(48), None)


def test_how_many_threads_work_changes_no_bit():
    x, product, threads = torch.randn(640), gemv.of(torch.randn(301, 640)), torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(product(x, None))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 40)), min_size=1, max_size=6), st.integers(1, 300))
def test_rounded_matrices_lie_side_by_side_and_none_in_another(shapes, at_once):
    halves, matrices = gemv.Halves(at_once), [torch.randn(shape) for shape in shapes]
    placed = [halves(matrix) for matrix in matrices]
    for made, matrix in zip(placed, matrices, strict=True):
        assert torch.equal(made, matrix.half()) and made.is_contiguous() and made.data_ptr() % (2 * gemv.EVEN) == 0
    rooms = {made.untyped_storage().data_ptr() for made in placed}
    assert len(rooms) == 1 or sum(gemv.even(made.numel()) for made in placed) > at_once


def test_what_was_compiled_is_kept_for_the_user_alone_and_used_again(anew: Path):
    assert gemv.working(torch.float32) is not None
    (made,) = anew.iterdir()
    assert stat.S_IMODE(anew.stat().st_mode) == 0o700
    before = made.stat().st_mtime_ns
    forget()
    assert gemv.working(torch.float32) is not None
    assert made.stat().st_mtime_ns == before and list(anew.iterdir()) == [made]


def test_a_folder_that_others_may_write_to_is_not_trusted(anew: Path):
    anew.mkdir()
    anew.chmod(0o777)
    assert gemv.working(torch.float32) is not None
    assert not list(anew.iterdir())


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false", "true"])
@pytest.mark.parametrize("weights", ["float32", "float16"])
def test_without_a_working_compiler_torch_multiplies(anew, monkeypatch, compiler, weights):
    monkeypatch.setenv("CXX", compiler)
    assert gemv.working(torch.float32) is None
    one, x = nn.Linear(512, 256), torch.randn(1, 512)
    with torch.no_grad():
        torch.testing.assert_close(
            runner(one, weights)(x), linear(x, one.weight.detach()[:], one.bias), rtol=1e-2, atol=1e-2
        )
    assert not anew.exists() or not list(anew.iterdir())
