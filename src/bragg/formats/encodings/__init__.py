"""Encodings that several formats share: JSON without recursion or in a stream, MessagePack, protobuf, arrays."""
