"""The answers to requests that are refused, as a whole or for some topics.

Owns: these answers, and the rest of a request that is refused in part.  Never: decides what is
refused (guards do).  Kafka: AbstractRequest.getErrorResponse, and the merging in KafkaApis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from kcluster.protocol.apis import APIS
from kcluster.protocol.error_answers import ErrorAnswers, topics_named
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message, message_class
from kcluster.security.rights import Admitted, GuardResult

DENIED: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Kafka's messages for the errors of denied requests."""
# DIFFERS: where the cluster's ACLs deny a whole request, Kafka's message prints its own request
# object: "Request Request(processor=2, ...) needs ALTER permission."


M = TypeVar("M", bound=Message)


class GuardedCall:
    """A request of an API in a version.  `topic_names`: the names of topics by their ids."""

    __slots__ = ("_key", "_version", "body", "topic_names")

    def __init__(
        self, api_key: int, version: int, body: Message, topic_names: Mapping[bytes, str]
    ) -> None:
        self._key = api_key
        self._version = version
        self.body = body
        self.topic_names = topic_names

    def refused(self, error: ErrorCode) -> Message:
        """The answer with an error for everything that was asked for."""
        answers = ErrorAnswers(self._key, self._version, error, self.topic_names.get)
        answer = answers.answer(self.body)
        return message_class(f"{APIS[self._key].name}Response")() if answer is None else answer

    @property
    def topics(self) -> list[str]:
        """The names of the topics that the request names."""
        named = topics_named(self._key, self._version, self.body, self.topic_names.get)
        return [topic for topic, _partition in named]

    def refused_topics(
        self, denied: frozenset[str], edit: Callable[..., Message] | None = None
    ) -> GuardResult:
        """The answer with an error for these topics, and what remains of the request.  `edit`:
        changes the answer with the errors."""
        if not denied:
            return None

        def is_denied(topic: str, _partition: int | None) -> bool:
            return topic in denied

        error, name_of = ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.topic_names.get
        answers = ErrorAnswers(self._key, self._version, error, name_of, is_denied)
        answer = answers.answer(self.body)
        assert answer is not None, self.body
        errors = answer if edit is None else edit(answer)
        rest = answers.rest(self.body)
        if rest is None:
            return errors
        return Admitted(rest, lambda answer: answers.merged(answer, errors))


def with_text(answer: M) -> M:
    """An answer with Kafka's message beside each error of a denied request."""
    text = DENIED.get(getattr(answer, "error_code", ErrorCode.NONE))
    if text is not None and hasattr(answer, "error_message"):
        answer.error_message = text
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    with_text(item)
    return answer
