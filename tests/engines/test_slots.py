"""Which slots are taken, what is copied, what is forgotten."""

import numpy as np
import torch

from rstar2cli.engines.slots import SlotCache


def _cache(slots: int = 3) -> SlotCache:
    cache = SlotCache(layers=2, slots=slots, kv_heads=1, head_dim=2, dtype=torch.float32, device=torch.device("cpu"))
    cache.reserve(slots, 8)
    return cache


def _ids(*ids: int) -> np.ndarray:
    return np.array(ids, dtype=np.int64)


def test_the_last_token_is_always_left_to_compute() -> None:
    cache = _cache()
    slot, shared = cache.take(_ids(1, 2, 3))
    assert shared == 0
    cache.release(slot, _ids(1, 2, 3))
    assert cache.take(_ids(1, 2, 3)) == (slot, 2)


def test_a_row_goes_on_in_its_own_slot() -> None:
    cache = _cache()
    slot, _ = cache.take(_ids(1, 2, 3))
    cache.release(slot, _ids(1, 2, 3, 4, 5))
    assert cache.take(_ids(1, 2, 3, 4, 5, 6, 7)) == (slot, 5)


def test_a_busy_source_is_copied_not_shared() -> None:
    cache = _cache()
    first, _ = cache.take(_ids(1, 2, 3))
    for layer in cache.data:
        layer[first, :3] = 7.0
    cache.note(first, _ids(1, 2, 3))
    second, shared = cache.take(_ids(1, 2, 9))
    assert second != first
    assert shared == 2
    for layer in cache.data:
        assert (layer[second, :2] == 7.0).all()
        assert (layer[second, 2:] == 0.0).all()


def test_what_is_not_computed_yet_is_not_copied() -> None:
    cache = _cache()
    cache.take(_ids(1, 2, 3))
    assert cache.take(_ids(1, 2, 9))[1] == 0


def test_the_slot_used_longest_ago_gives_way() -> None:
    cache = _cache(slots=2)
    a, _ = cache.take(_ids(1, 1))
    b, _ = cache.take(_ids(2, 2))
    cache.release(b, _ids(2, 2))
    cache.release(a, _ids(1, 1))
    assert cache.take(_ids(3, 3)) == (b, 0)


def test_growing_keeps_the_contents_and_the_scratch_slot_last() -> None:
    cache = _cache(slots=2)
    slot, _ = cache.take(_ids(1, 2))
    for layer in cache.data:
        layer[slot, :2] = 5.0
    cache.reserve(4, 1000)
    assert all(layer.shape[0] == 5 for layer in cache.data)
    assert cache.scratch == 4
    assert cache.length >= 1000
    assert all((layer[slot, :2] == 5.0).all() for layer in cache.data)


def test_forget_drops_everything() -> None:
    cache = _cache()
    slot, _ = cache.take(_ids(1, 2, 3))
    cache.release(slot, _ids(1, 2, 3))
    cache.forget()
    assert cache.take(_ids(1, 2, 3))[1] == 0


def test_freed_memory_is_taken_again_when_needed() -> None:
    cache = _cache()
    slot, _ = cache.take(_ids(1, 2, 3))
    cache.release(slot, _ids(1, 2, 3))
    cache.free()
    assert sum(layer.nbytes for layer in cache.data) == 0
    cache.reserve(cache.slots, 8)
    assert cache.length >= 8
    assert cache.take(_ids(1, 2, 3))[1] == 0
    assert all((layer == 0).all() for layer in cache.data)
