"""What is derived of a snapshot: once for all threads, and no thread waits for another's value."""

from __future__ import annotations

import threading

from hippogpu.methods.derived import Derived


def test_a_value_is_made_once_however_many_threads_ask() -> None:
    derived, made, gate = Derived(), [], threading.Barrier(4)

    def ask() -> None:
        gate.wait()
        derived.once("key", lambda: made.append(1) or 7)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_a_value_under_way_holds_up_no_other_key() -> None:
    derived, begun, go = Derived(), threading.Event(), threading.Event()

    def slow() -> int:
        begun.set()
        assert go.wait(timeout=60)
        return 1

    thread = threading.Thread(target=lambda: derived.once("slow", slow))
    thread.start()
    assert begun.wait(timeout=60)
    assert derived.once("quick", lambda: 2) == 2
    go.set()
    thread.join()
    assert derived.once("slow", lambda: 3) == 1


def test_a_value_may_be_made_of_another() -> None:
    derived = Derived()
    assert derived.once("outer", lambda: derived.once("inner", lambda: 2) + 1) == 3


def test_a_value_that_could_not_be_made_is_tried_again() -> None:
    derived = Derived()
    try:
        derived.once("key", lambda: 1 // 0)
    except ZeroDivisionError:
        assert derived.once("key", lambda: 5) == 5
