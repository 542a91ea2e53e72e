"""Writes python.json: documents as CPython's json module formats them.

Run it with `python3 python.py > python.json` after changing a case.
"""
import json

cases = {
    "empty": {},
    "upstream_t55": {
        "pubsub:/event/LoginEventStream": "AAAAAAAAAqc=",
        "egress:budget": json.dumps({"date": "2026-07-01", "bytes": 150}),
        "k": "\u00e9",
    },
    "order": {"b": "1", "a": "2", "": "3", "z": "", "B": "4"},
    "short_escapes": {"quote\"back\\slash/": "\b\f\n\r\t"},
    "control": {"".join(map(chr, range(0x20))): "\x7f\x80\x9f"},
    "ascii": {"p": "".join(map(chr, range(0x20, 0x7F)))},
    "html": {"<&>": "</script>"},
    "separators": {"\u2028": "\u2029"},
    "bmp": {"\u00e9\u4e2d\ud7ff\ue000": "\ufffd\ufffe\uffff"},
    "astral": {"\U0001f600": "\U00010000\U0010ffff a\U0001f9ea"},
    "fence": {"__fence_epoch__": "7", "__fence__": json.dumps({"term": "t", "lease": "l", "ttl_ms": 1, "write_id": "w"})},
    "org": {"org=prod:pubsub:/event/X": "AAAA"},
    "long": {"k" * 3000: "\u00e9" * 3000},
}
out = [{"name": n, "text": json.dumps(d), "pairs": [list(p) for p in d.items()]} for n, d in cases.items()]
print(json.dumps(out, indent=1))
