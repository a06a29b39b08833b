"""What published tests of TT-NN take from tt-metal's conftest.py: a pytest plugin, with which of the cases are run."""

import json
import pathlib
import random
import signal

import pytest
import torch
import ttc

ttnn = ttc.as_ttnn(replace=True)  # tt-metal's own folder of that name is no module that could run


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=0)
    parser.addoption("--case-seconds", type=int, default=60)
    parser.addoption("--results")


def pytest_collection_modifyitems(config, items):
    most = config.getoption("--cases")
    if 0 < most < len(items):
        items[:] = [items[i * len(items) // most] for i in range(most)]


class TooLong(BaseException):
    pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    def stop(*_):
        raise TooLong(f"longer than {item.config.getoption('--case-seconds')} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(item.config.getoption("--case-seconds"))
    yield
    signal.alarm(0)


_results = {"passed": 0, "failed": [], "skipped": []}


def pytest_runtest_logreport(report):
    if report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else "xfail"
        _results["skipped"].append(why.removeprefix("Skipped: "))
    elif report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash is not None else str(report.longrepr).strip().splitlines()[-1]
        _results["failed"].append(" ".join(line.strip() for line in text.splitlines()[:2]))
    elif report.when == "call":
        _results["passed"] += 1


def pytest_collectreport(report):
    if report.failed:
        lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        _results["failed"].append((lines or str(report.longrepr).splitlines())[-1])


def pytest_sessionfinish(session):
    if session.config.getoption("--results"):
        pathlib.Path(session.config.getoption("--results")).write_text(json.dumps(_results))


# ---- fixtures --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def reset_seeds():
    torch.manual_seed(213919)
    random.seed(213919)


@pytest.fixture
def function_level_defaults(reset_seeds):
    pass


@pytest.fixture
def device_params(request):
    return getattr(request, "param", {})


@pytest.fixture
def device(device_params):
    opened = ttnn.open_device(device_id=0, **device_params)
    ttnn.SetDefaultDevice(opened)
    yield opened
    ttnn.close_device(opened)


@pytest.fixture
def mesh_device(device):
    return device


@pytest.fixture
def use_program_cache(device):
    device.enable_program_cache()


@pytest.fixture
def is_ci_env():
    return False
