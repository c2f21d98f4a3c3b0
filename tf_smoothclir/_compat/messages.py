"""JSON of protocol buffers: an option of protobuf has another name on each stack."""

from __future__ import annotations

from google.protobuf import json_format, message

from tf_smoothclir._compat import ON_KERAS_3

_WITH_EMPTY_FIELDS = (
    "always_print_fields_with_no_presence" if ON_KERAS_3 else "including_default_value_fields"
)


def message_to_dict(found: message.Message) -> dict:
    """All fields of a message, empty ones included, by the names in its definition."""
    return json_format.MessageToDict(
        found, preserving_proto_field_name=True, **{_WITH_EMPTY_FIELDS: True}
    )
