"""Java's hash codes and the order of its HashMap; expected values are OpenJDK's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kcluster.protocol.java import JavaPriorityQueue, entity_hash, hash_order, java_hash_code


def test_java_hash_code__is_javas() -> None:
    assert java_hash_code("") == java_hash_code(None) == 0
    assert java_hash_code("hello") == 99162322
    assert java_hash_code("polygenelubricants") == -(1 << 31)
    assert java_hash_code("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_entity_hash__does_not_depend_on_the_order_of_types() -> None:
    pair = (("user", "a"), ("client-id", None))
    assert entity_hash(pair) == entity_hash(pair[::-1])
    assert entity_hash((("user", None),)) == 31 + java_hash_code("user")


def test_hash_order__by_bucket_then_in_order_of_insertion() -> None:
    assert hash_order(["b", "a", "c", "a"], java_hash_code) == ["a", "b", "c"]
    assert hash_order([17, 33, 1, 16], lambda key: key) == [16, 17, 33, 1]


def test_hash_order__more_keys_need_more_buckets() -> None:
    keys = [17, *range(11)]
    assert hash_order(keys, lambda key: key) == [0, 17, *range(1, 11)]
    assert hash_order([*keys, 11], lambda key: key) == [*range(12), 17]


def test_priority_queue__equal_elements_come_in_java_s_order() -> None:
    # As of OpenJDK: the last element takes the place of the first one.
    queue = JavaPriorityQueue[str](len)
    for text in ("a", "b", "c", "d"):
        queue.add(text)
    assert [queue.poll() for _ in range(4)] == ["a", "d", "c", "b"]


@given(st.lists(st.integers()))
def test_priority_queue__gives_the_least_first(numbers: list[int]) -> None:
    queue = JavaPriorityQueue[int](lambda number: number)
    for number in numbers:
        queue.add(number)
    assert len(queue) == len(numbers)
    assert [queue.poll() for _ in numbers] == sorted(numbers)
