"""The schema table, its files, and the classes and stub made from it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kcluster.packaged import PACKAGE
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, LATEST, VERSIONS, ApiKey, advertised_versions, codec
from kcluster.protocol.codec import schema
from kcluster.protocol.codec.schema import (
    NEVER,
    SCHEMA_DIR,
    api_lines,
    message_names,
    message_schema,
)
from kcluster.protocol.messages import Message, message_class


def test_schema__every_file_begins_with_its_line_of_the_index() -> None:
    in_package = Path(PACKAGE) / SCHEMA_DIR
    for folder, names in (
        (in_package, api_lines()),
        (in_package / "records", schema.record_lines()),
    ):
        index = (folder / "index.txt").read_text().splitlines()
        files = {path.stem: path for path in folder.glob("*.txt") if path.stem != "index"}
        assert sorted(files) == sorted(names)
        heads = {name: path.read_text().splitlines()[0] for name, path in files.items()}
        assert sorted(index) == sorted(heads.values())


def inside(field: schema.FieldSchema) -> schema.StructSchema:
    """What the elements of this field are made of."""
    assert field.struct is not None
    return field.struct


def test_schema__reads_every_fact_of_a_line() -> None:
    response = message_schema("ProduceResponse")
    topic = response.top.fields[0]
    assert (topic.name, topic.type, topic.is_array) == ("responses", "TopicProduceResponse", True)
    fields = {f.name: f for f in inside(inside(topic).fields[2]).fields}
    message = fields["error_message"]
    assert message.versions == message.null_versions == (8, schema.LAST_VERSION)
    assert (message.default, message.is_ignorable, message.is_array) == (None, True, False)
    leader = fields["current_leader"]
    assert (leader.tag, leader.is_tagged(9), leader.is_tagged(10)) == (0, False, True)
    assert leader.default is schema.NEW_STRUCT
    assert [f.name for f in inside(topic).untagged(13)] == ["topic_id", "partition_responses"]
    assert [f.name for f in response.top.tagged(12)] == ["node_endpoints"]
    assert response.versions == (0, 13)
    assert (response.is_flexible(8), response.is_flexible(9)) == (False, True)


def test_schema__merges_versions_that_4_0_removed_with_newer_ones() -> None:
    topics = message_schema("OffsetCommitRequest").top.fields[-1]
    fields = {f.name: f for f in inside(topics).fields}
    assert fields["name"].versions == (0, 9)
    assert fields["topic_id"].versions == (10, schema.LAST_VERSION)
    partition = {f.name: f for f in inside(fields["partitions"]).fields}
    assert partition["commit_timestamp"].versions == (1, 1)  # in 3.9.1 only
    vote = inside(inside(message_schema("VoteRequest").top.fields[2]).fields[1])
    assert "candidate_id" not in [f.name for f in vote.fields]  # renamed to replica_id in 4.x


def test_schema__an_unknown_message_is_a_key_error() -> None:
    for name in ("NoSuchRequest", "Produce", "Producerequest", "x"):
        with pytest.raises(KeyError):
            message_schema(name)


def test_apis__keys_names_and_versions_are_the_tables() -> None:
    for key, line in APIS.items():
        name = ApiKey(key).name
        assert name.replace("_", "").lower() == line.name.lower()
        assert (key in VERSIONS) == (line.versions != NEVER)
    assert len(ApiKey) == len(APIS) == 95
    assert len(VERSIONS) == 91
    assert LATEST == "4.4.0"
    assert (VERSIONS[ApiKey.PRODUCE], VERSIONS[ApiKey.FETCH]) == ((3, 13), (4, 18))


def test_apis__advertised_versions_are_those_of_a_4_4_0_broker() -> None:
    rows = {key: (low, high) for key, low, high in advertised_versions()}
    assert rows[ApiKey.PRODUCE] == (0, 13)
    assert rows[ApiKey.INIT_PRODUCER_ID] == (0, 5)  # 6 is unstable
    assert ApiKey.VOTE not in rows
    assert ApiKey.PUSH_TELEMETRY not in rows
    assert len(rows) == 77  # as one with default configs was seen to answer
    assert list(rows) == sorted(rows)
    controller = [key for key, _, _ in advertised_versions("controller")]
    assert ApiKey.VOTE in controller
    assert ApiKey.PRODUCE not in controller


def test_apis__an_unknown_version_has_no_codec() -> None:
    for key, version in ((0, 14), (0, -1), (999, 0), (76, 2)):
        with pytest.raises(KeyError):
            codec(key, version)
    assert codec(0, 9) is codec(ApiKey.PRODUCE, 9)


def test_messages__classes_have_the_schema_s_fields_and_defaults() -> None:
    for name in message_names():
        kind = message_class(name)
        assert kind is getattr(m, name)
        assert issubclass(kind, Message)
        assert kind.__module__ == "kcluster.protocol.messages"
        assert kind.__struct_fields__ == tuple(f.name for f in message_schema(name).top.fields)
        assert not kind.__struct_config__.gc
        built = kind()
        for field in message_schema(name).top.fields:
            value = getattr(built, field.name)
            if field.default == schema.NEW_LIST:
                assert value == []
            elif field.default is schema.NEW_STRUCT:
                assert value == getattr(kind, field.type)()
            else:
                assert value == field.default


def test_messages__the_stub_describes_the_classes() -> None:
    stub = ast.parse((Path(m.__file__).with_suffix(".pyi")).read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    assert list(classes) == ["Message", *message_names()]
    for name in message_names():
        kind = message_class(name)
        assert stub_fields(classes[name]) == list(kind.__struct_fields__)
        nested = [node for node in classes[name].body if isinstance(node, ast.ClassDef)]
        for node in nested:
            inner = getattr(kind, node.name)
            assert inner.__qualname__ == f"{name}.{node.name}"
            assert stub_fields(node) == list(inner.__struct_fields__)
        below = schema.structs_below(message_schema(name).top)
        assert [node.name for node in nested] == list(below)
        if name == "FetchResponse":
            types = {
                ast.unparse(s.target): ast.unparse(s.annotation)
                for s in classes[name].body
                if isinstance(s, ast.AnnAssign)
            }
            assert types["error_code"] == "int"
            assert types["responses"] == "list[FetchResponse.FetchableTopicResponse]"


def stub_fields(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(s.target) for s in node.body if isinstance(s, ast.AnnAssign)]


def test_messages__the_text_form_shows_what_differs_from_the_defaults() -> None:
    topic = m.FetchRequest.FetchTopic(topic_id=bytes(range(16)))
    request = m.FetchRequest(max_wait_ms=500, topics=[topic])
    assert repr(request) == (
        "FetchRequest(max_wait_ms=500, topics=[FetchTopic(topic_id=AAECAwQFBgcICQoLDA0ODw)])"
    )
    data = m.ProduceRequest.PartitionProduceData(1, memoryview(b"abc"))
    assert repr(data) == "PartitionProduceData(index=1, records=<3 bytes>)"


def test_messages__lists_and_structs_are_not_shared() -> None:
    first, second = m.ProduceResponse(), m.ProduceResponse()
    first.responses.append(m.ProduceResponse.TopicProduceResponse())
    assert second.responses == []
    kind = m.ProduceResponse.PartitionProduceResponse
    assert kind().current_leader is not kind().current_leader


def test_messages__an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        getattr(m, "NoSuchRequest")  # noqa: B009 - reading it is the test
    assert "ProduceRequest" in dir(m)
    with pytest.raises(TypeError):
        m.ProduceRequest(**{"nonsense": 1})  # type: ignore[arg-type]  # the test
    assert msgspec.structs.asdict(m.OffsetCommitKey("g", "t", 3)) == {
        "group": "g",
        "topic": "t",
        "partition": 3,
    }


def test_messages__importing_reads_the_index_only() -> None:
    code = (
        "import kcluster.protocol.messages as m, kcluster.protocol.apis, sys;"
        "from kcluster.protocol.codec import schema;"
        "print(schema.message_schema.cache_info().currsize);"
        "print('kcluster.protocol.codec.compiler' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
