"""An event of every kind, with a plain value in each field."""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from kcluster.events import EVENT_TYPES


def example(kind: inspect.Type) -> Any:
    """A value of this type."""
    match kind:
        case inspect.UnionType(types=types):
            return example(types[0])
        case inspect.StructType(cls=cls, fields=fields):
            return cls(**{each.name: example(each.type) for each in fields})
        case inspect.EnumType(cls=cls):
            return next(iter(cls))
        case inspect.VarTupleType(item_type=item):
            return (example(item),)
        case inspect.TupleType(item_types=items):
            return tuple(map(example, items))
        case inspect.DictType(key_type=key, value_type=value):
            return {example(key): example(value)}
    plain = {
        inspect.IntType: 7,
        inspect.FloatType: 0.5,
        inspect.StrType: "preferred",
        inspect.BoolType: True,
        inspect.NoneType: None,
    }
    return plain[type(kind)]


EXAMPLES = [example(inspect.type_info(each)) for each in EVENT_TYPES]
