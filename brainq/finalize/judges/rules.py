"""Judges that need no model: they count words. They stand in where a model cannot be asked, and say so.

Both see words, not meaning: a paraphrase counts as unsupported, a claim turned into its opposite as supported. A
score of theirs (`method="rules"`) is for trends over many turns, not for a verdict on one.
"""

from __future__ import annotations

from brainq.contracts.judgement import JudgeCase, Judgement
from brainq.finalize.words import cut, raw_words, sentences, terms

SUPPORTED = 0.5  # of a sentence's terms must stand in one piece of evidence
_EVIDENCE_ROLE = "[tool] "
_SHOWN = 120


class RuleFaithfulness:
    """The share of the answer's sentences that its evidence supports.

    F = |supported sentences| / |sentences|, as the faithfulness of S. Es et al., "RAGAS: Automated Evaluation of
    Retrieval Augmented Generation" (EACL 2024, arXiv:2309.15217), with sentences for statements, and for the model's
    verdict this: a sentence is supported if one piece of evidence holds at least half of its different content terms
    (the unigram precision of ROUGE-1, C.-Y. Lin 2004) and every number in it stands in some piece. Evidence: the
    relevant facts, and the `[tool]` lines of the transcript. Sentences without content terms claim nothing and do
    not count; an answer of such sentences only scores 1. Without evidence nothing is supported: 0.
    """

    name = "faithfulness"

    def judge(self, case: JudgeCase) -> Judgement:
        evidence = _evidence(case)
        pieces = [set(terms(piece)) for piece in evidence]
        numbers = {number for piece in evidence for number in _numbers(piece)}
        claims = [sentence for sentence in sentences(case.answer) if terms(sentence)]
        if not claims:
            return _judged(1.0, "the answer claims nothing")
        if not evidence:
            return _judged(0.0, "there are no facts and no tool results to hold the answer against")
        unsupported = [claim for claim in claims if not _is_supported(claim, pieces, numbers)]
        score = 1 - len(unsupported) / len(claims)
        reason = f"{len(claims) - len(unsupported)} of {len(claims)} sentences are supported by facts or tool results"
        if unsupported:
            reason += f"; not supported: {cut(unsupported[0], _SHOWN)!r}"
        return _judged(score, reason)


class RuleRelevance:
    """The share of the question's terms that the answer takes up: |Q ∩ A| / |Q|, each a set of content terms.

    The recall of ROUGE-1 with the question as the reference. A cosine would count an answer's length against it:
    the better an answer explains, the more terms it has that no question names. A question without content terms
    ("and now?") cannot be missed: 1 for any answer. An empty answer: 0.
    """

    name = "relevance"

    def judge(self, case: JudgeCase) -> Judgement:
        asked = dict.fromkeys(terms(case.question))
        said = set(terms(case.answer))
        if not case.answer.strip():
            return _judged(0.0, "the answer is empty")
        if not asked:
            return _judged(1.0, "the question has no content terms to miss")
        missed = [term for term in asked if term not in said]
        reason = f"the answer takes up {len(asked) - len(missed)} of the question's {len(asked)} terms"
        if missed:
            reason += f"; not: {cut(', '.join(missed), _SHOWN)}"
        return _judged(1 - len(missed) / len(asked), reason)


def _evidence(case: JudgeCase) -> list[str]:
    results = [line for line in case.transcript.splitlines() if line.startswith(_EVIDENCE_ROLE)]
    found = [*case.relevant_facts, *(line.removeprefix(_EVIDENCE_ROLE) for line in results)]
    return [piece for piece in found if terms(piece)]


def _is_supported(claim: str, pieces: list[set[str]], numbers: set[str]) -> bool:
    claimed = set(terms(claim))
    best = max(len(claimed & piece) for piece in pieces) / len(claimed)
    return best >= SUPPORTED and all(number in numbers for number in _numbers(claim))


def _numbers(text: str) -> list[str]:
    return [word for word in raw_words(text) if word[0].isdigit()]


def _judged(score: float, reason: str) -> Judgement:
    return Judgement(score=round(min(1.0, max(0.0, score)), 4), reason=reason, method="rules")
