"""Why a node has ended by itself: what it printed, and its exit code."""

from __future__ import annotations

import pytest

from kcluster.apache_kafka.last_words import ended_with, error_in

STARTING = "[2026-11-23 20:41:03,182] INFO Registered MBean (kafka.Log4jController)\n"
BIND = (
    "[2026-11-23 20:41:04,100] ERROR [BrokerServer id=1] Fatal error during startup."
    " (kafka.server.BrokerServer)\n"
    "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:9092:"
    " Address already in use.\n"
    "\tat org.apache.kafka.network.SocketServer.openServerSocket(SocketServer.java:1)\n"
)
WARNING = (
    "[2026-11-23 20:41:05,000] WARN Error in response (kafka.server.RemoteLeaderEndPoint)\n"
    "java.io.IOException: Connection to 127.0.0.1:9092 failed.\n"
    "\tat org.apache.kafka.clients.NetworkClientUtils.awaitReady(NetworkClientUtils.java:1)\n"
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", None),
        (STARTING, None),
        (
            STARTING + BIND,
            "org.apache.kafka.common.KafkaException: Socket server failed to bind to"
            " 127.0.0.1:9092: Address already in use.",
        ),
        (
            STARTING + "[2026-11-23 20:41:04,100] ERROR the disk is full (kafka.Log)\n" + STARTING,
            "the disk is full",
        ),
        ("Cannot set kraft.version to 1\n", "Cannot set kraft.version to 1"),
        (STARTING + WARNING, None),
        (
            STARTING + 'Exception in thread "main" java.lang.Error: no\n\tat a.B.c(B.java:1)\n',
            'Exception in thread "main" java.lang.Error: no',
        ),
        (
            "Picked up JAVA_TOOL_OPTIONS: -Xint\nUnrecognized VM option 'Nope'\n"
            "Error: Could not create the Java Virtual Machine.\n"
            "Error: A fatal exception has occurred. Program will exit.\n",
            "Unrecognized VM option 'Nope'",
        ),
        (
            "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n"
            "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory failed\n",
            "There is insufficient memory for the Java Runtime Environment to continue.",
        ),
    ],
)
def test_error__is_the_last_one(text: str, error: str | None) -> None:
    assert error_in(text) == error


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "ended with exit code 1"), (-9, "was ended by SIGKILL"), (-70, "was ended by signal 70")],
)
def test_end__is_an_exit_code_or_a_signal(code: int, words: str) -> None:
    assert ended_with(code) == words
