"""Runs each test in an event loop of its own and, when one fails, tells the frames exchanged."""

import asyncio
import inspect
import json

import pytest

from peer import rpc

TEST = 150  # seconds a test may take in all; one that hangs fails with its frames


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    rpc.ENDPOINTS.clear()
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), TEST))
    return True


def _told(frame):
    """A frame as text, without the token it may carry (T5)."""
    way, message = frame
    if isinstance(message, dict) and message.get("method") == "_lembas/token":
        message = dict(message, params={"token": "…"})
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    return f"{way} {text[:1500]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.failed:
        for number, end in enumerate(rpc.ENDPOINTS):
            report.sections.append((f"link {number}, from the {end.label}", "\n".join(map(_told, end.frames[-80:]))))
            if end.faults:
                report.sections.append((f"link {number}, faults", "\n".join(end.faults)))
    return report
