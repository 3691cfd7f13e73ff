"""The offline model: a few rules that read the user's message and the tools' results, and say only what those say.

It is a set of rules, not a language model. It lets the example run without a key, and shows the engine the same
shapes a real model would: calls in parallel, calls that build on results, and an answer with its sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from brainq import ModelReply, ModelRequest
from brainq.testing import calls, says
from examples.vault.conversation import CallsNeeded, Conversation
from examples.vault.ranking import shortened, words

Rule = Callable[["re.Match[str]", Conversation], str]

_URL = re.compile(r"https?://\S+[^\s.,;:!?)\]]")
_SEND = re.compile(
    r"\b(?:send|post|mail)\s+(?:the\s+|my\s+)?(?:note\s+)?(\S+)\s+to\s+(https?://\S+[^\s.,;:!?)\]])", re.I
)
_OPEN_LOOPS = re.compile(
    r"\b(?:open|unfinished|loose)\s+(?:loops?|ends?|tasks?|things?)\b(?:.*?\b(?:about|on|for|of|in)\s+(.+))?", re.I
)
_NOTE_DOWN = re.compile(
    r"\b(?:note|write|jot|take)\s+(?:down|that)\s*(?:in\s+(\S+?\.md)\b)?[\s:,]*(?:that\s+)?(.+)", re.I | re.S
)
_DELETE = re.compile(r"\b(?:delete|remove|throw\s+away)\s+(?:the\s+|my\s+)?(?:note\s+)?(.+)", re.I | re.S)
_KNOWN = re.compile(r"\b(?:what\s+do\s+(?:i|we)\s+know\s+about|tell\s+me\s+about)\s+(.+)", re.I | re.S)
_ANYTHING = re.compile(r"(.+)", re.I | re.S)
_SAVED_CHARS = 1_500


def reply(request: ModelRequest) -> ModelReply:
    """The next reply of a turn. The same request gets the same reply, so a step may be run again."""
    turn = Conversation(request.messages, request.turn_id)
    answers: list[str] = []
    for message in turn.said:  # several when the user wrote on while the turn ran
        try:
            answers.append(_answer(message, turn))
        except CallsNeeded as needed:
            return calls(*needed.wanted)
    return says("\n\n".join(answers))


def _answer(message: str, turn: Conversation) -> str:
    for pattern, rule in RULES:
        if match := pattern.search(message):
            return rule(match, turn)
    return "Ask me about your notes."


def open_loops(match: re.Match[str], turn: Conversation) -> str:
    """`What are my open loops about X?`: all loops and a search side by side, then those that belong together."""
    topic = _topic(match[1] or "")
    if not topic:
        (loops,) = turn.need(("list_open_loops", {}))
        found = _rows(loops.value)
        return _loops_text(f"You have {len(found)} open loops:", found) if found else f"I found none. {_trouble(loops)}"
    loops, hits = turn.need(("list_open_loops", {}), ("local_search", {"query": topic, "limit": 3}))
    if loops.is_error:
        return f"I could not read your open loops. {loops.text}"
    near = [row["path"] for row in _rows(hits.value)]
    asked = set(words(topic))
    about = [
        row
        for row in _rows(loops.value)
        if row["path"] in near[:1] or asked & set(words(row["text"] + " " + row["title"]))
    ]
    about.sort(
        key=lambda row: (near.index(row["path"]) if row["path"] in near else len(near), row["path"], row["line"])
    )
    if not about:
        return f"None of your {len(_rows(loops.value))} open loops is about {topic}."
    return _loops_text(f"{len(about)} of your {len(_rows(loops.value))} open loops are about {topic}:", about)


def note_down(match: re.Match[str], turn: Conversation) -> str:
    """`Note down that ...`: find the note it belongs to, look into it, add a line; a new note where none fits."""
    path, line = match[1], shortened(" ".join(match[2].split()), 1_000)
    line = line[:1].upper() + line[1:]
    if path is None:
        (hits,) = turn.need(("local_search", {"query": line, "limit": 1}))
        path = next((row["path"] for row in _rows(hits.value)), None)
    if path is None:
        path = f"inbox/{_slug(line)}.md"
        (written,) = turn.need(("write_note", {"path": path, "text": f"# {shortened(line, 60)}\n\n- {line}\n"}))
        return (
            f"No note was about this, so I made {path}."
            if not written.is_error
            else f"I could not write it. {written.text}"
        )
    (note,) = turn.need(("read_note", {"path": path}))
    (written,) = turn.need(("write_note", {"path": path, "text": f"- {line}", "append": True}))
    if written.is_error:
        return f"I could not write to {path}. {written.text}"
    if note.is_error:
        return f"I made {path} and wrote: {line}"
    kept = _count(note.value["open_loops"], "open loop")
    return f"I added a line to “{note.value['title']}” ({path}), which keeps its {kept}:\n- {line}"


def fetch(match: re.Match[str], turn: Conversation) -> str:
    """`Fetch http://...`: get the page, see what the vault has on it, and keep a note with links both ways."""
    url = match[0]
    (page,) = turn.need(("fetch_url", {"url": url}))
    if page.is_error:
        return f"I could not fetch {url}, so nothing was saved. {page.text}"
    title = str(page.value["title"])
    (hits,) = turn.need(("local_search", {"query": title, "limit": 3}))
    path = f"reading/{_slug(title)}.md"
    related = [row for row in _rows(hits.value) if row["path"] != path]
    body = [f"# {title}", f"From {url}", shortened_paragraphs(str(page.value["text"]), _SAVED_CHARS)]
    if related:
        links = ", ".join(f"[[{row['path'].removesuffix('.md')}]]" for row in related)
        body.append(f"Related: {links}")
    (written,) = turn.need(("write_note", {"path": path, "text": "\n\n".join(body) + "\n"}))
    if written.is_error:
        return f"I read “{title}”, but could not save it. {written.text}"
    names = ", ".join(f"{row['title']} ({row['path']})" for row in related)
    first = shortened(str(page.value["text"]).split("\n\n")[0], 240)
    return f"“{title}” begins: {first}\nI saved it as {path}" + (f", linked to {names}." if names else ".")


def send(match: re.Match[str], turn: Conversation) -> str:
    """`Send the note X to http://...`: once. Where nobody knows whether it arrived, it is not sent again."""
    path, url = match[1], match[2]
    (sent,) = turn.need(("send_note", {"path": path, "url": url}))
    if sent.is_error:
        return f"I did not send {path} again. {sent.text}"
    return f"I sent {sent.value['path']} to {url}, which answered {sent.value['status']}."


def delete(match: re.Match[str], turn: Conversation) -> str:
    """`Delete the note X`: read it first, so that the answer can say what is gone."""
    name = match[1].strip(" .!?\"'“”")
    path = name.removeprefix("[[").removesuffix("]]")
    if "/" not in path and not path.endswith(".md"):
        (hits,) = turn.need(("local_search", {"query": name, "limit": 1}))
        first = next(iter(_rows(hits.value)), None)
        if first is None or set(words(name)) - set(words(f"{first['title']} {first['path']}")):
            return f"I found no note called {name}, so I deleted nothing."
        path = first["path"]
    (note,) = turn.need(("read_note", {"path": path}))
    if note.is_error:
        return f"I deleted nothing. {note.text}"
    (gone,) = turn.need(("delete_note", {"path": path}))
    if gone.is_error:
        return f"I could not delete {path}. {gone.text}"
    held = _count(note.value["open_loops"], "open loop")
    linking = ", ".join(gone.value["linked_from"])
    after = f"These notes still link to it: {linking}." if linking else "No other note linked to it."
    return f"I deleted “{note.value['title']}” ({note.value['path']}); it held {held}. {after}"


def from_the_vault(match: re.Match[str], turn: Conversation) -> str:
    """Everything else: what the notes say about it, and nothing more."""
    topic = _topic(match[1])
    (pack,) = turn.need(("get_context_pack", {"topic": topic}))
    if pack.is_error:
        return f"I could not look into your notes. {pack.text}"
    found = _rows(pack.value["notes"])
    if not found:
        return f"Your notes say nothing about {topic}."
    lines = [f"- {row['title']} ({row['path']}): {row['excerpt']}" for row in found]
    loops = _rows(pack.value["open_loops"])
    tail = [f"Still open in {found[0]['title']}: {'; '.join(row['text'] for row in loops)}."] if loops else []
    return "\n".join([f"Your notes on {topic}:", *lines, *tail])


RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    (_SEND, send),
    (_URL, fetch),
    (_DELETE, delete),
    (_NOTE_DOWN, note_down),
    (_OPEN_LOOPS, open_loops),
    (_KNOWN, from_the_vault),
    (_ANYTHING, from_the_vault),
)


def shortened_paragraphs(text: str, longest: int) -> str:
    """Whole paragraphs up to about `longest` characters, at least the start of the first."""
    kept: list[str] = []
    for paragraph in text.split("\n\n"):
        if sum(map(len, kept)) + len(paragraph) > longest:
            return "\n\n".join([*kept, "(the page goes on)"]) if kept else shortened(paragraph, longest)
        kept.append(paragraph)
    return "\n\n".join(kept)


def _loops_text(head: str, rows: list[dict[str, Any]]) -> str:
    return "\n".join([head, *(f"- {row['text']} ({row['path']}, line {row['line']})" for row in rows)])


def _rows(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else []


def _trouble(result: Any) -> str:
    return str(result.text) if result.is_error else ""


def _topic(words_of_it: str) -> str:
    topic = " ".join(words_of_it.split()).strip(" .!?:\"'")
    return re.sub(r"^my\b", "your", topic, flags=re.I)


def _slug(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())[:7]) or "note"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
