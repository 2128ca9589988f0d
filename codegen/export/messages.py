"""What results that are not 0 mean: a table of texts, and the function of C that looks them up."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Messages:
    """What results that are not 0 mean."""

    texts: list[str] = field(default_factory=list)

    def code(self, text: str) -> int:
        """The result that means a text."""
        self.texts.append(text)
        return len(self.texts)


def messages_text(prefix: str, messages: Messages) -> str:
    """``P_message(code)``: what a result means."""
    lines: list[str] = []
    for i, text in enumerate(("no error", *messages.texts, "no such code")):
        data = text.encode() + b"\0"
        shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in data)
        lines.append(f'@unity_c_m{i} = internal constant [{len(data)} x i8] c"{shown}"')
    last = len(messages.texts) + 1
    table = ", ".join(f"ptr @unity_c_m{i}" for i in range(last + 1))
    return "\n".join(
        [
            *lines,
            f"@unity_c_messages = internal constant [{last + 1} x ptr] [{table}]",
            f"define ptr @{prefix}_message(i32 %code) nounwind {{",
            f"  %known = icmp ult i32 %code, {last}",
            f"  %index = select i1 %known, i32 %code, i32 {last}",
            "  %place = getelementptr ptr, ptr @unity_c_messages, i32 %index",
            "  %text = load ptr, ptr %place",
            "  ret ptr %text",
            "}",
        ]
    )
