"""Bugs of content that is encrypted."""

from __future__ import annotations

from lab.mutants.bug import Bug

ENVELOPE = "brainq/contrib/encryption/envelope.py"
UNIT = ("tests/contrib/encryption/test_envelope.py",)
VALUES = ("tests/contrib/encryption/test_reencrypt.py",)
POINTS = ("tests/contrib/encryption/test_crash_points.py",)

BUGS = (
    Bug(
        "a process goes on with a tenant's key that was removed",
        ENVELOPE,
        "asked_at + self.cache_s",
        "asked_at + 100 * self.cache_s",
        UNIT,
    ),
    Bug(
        "new content is put under a key that is being shredded",
        ENVELOPE,
        'while row is None or row["state"] != "current":',
        "while row is None:",
        UNIT,
    ),
    Bug(
        "a re-encryption brings what is being shredded under a key that stays",
        "brainq/contrib/encryption/reencrypt.py",
        'row["state"] in ("leaving", "shredded")',
        'row["state"] == "shredded"',
        VALUES,
    ),
    Bug(
        "the words of an encrypted memory are in the clear",
        "brainq/adapters/sql/repositories/knowledge.py",
        '"terms": "" if is_encrypted else',
        '"terms":',
        VALUES,
    ),
    Bug(
        "encryption: an interrupted shred leaves keys leaving",
        "brainq/contrib/encryption/content_keys.py",
        "        except BaseException:\n            self.stay()\n",
        "        except Exception:\n            self.stay()\n",
        POINTS,
    ),
    Bug(
        "encryption: a key goes while a process may still have it",
        "brainq/contrib/encryption/content_keys.py",
        "                time.sleep(max(0.0, self._gone_at - time.monotonic()))",
        "                pass",
        POINTS,
    ),
    Bug(
        "encryption: nobody waits for what was being written when a cache ran out",
        "brainq/contrib/encryption/content_keys.py",
        "default=0.0) + SETTLE_S",
        "default=0.0)",
        POINTS,
    ),
    Bug(
        "encryption: a process that shreds goes on with the key",
        "brainq/contrib/encryption/content_keys.py",
        "        for codec in self._codecs:\n            codec.forget()\n",
        "",
        POINTS,
    ),
    Bug(
        "encryption: a shredded key stays in the file where its shredder died",
        "brainq/contrib/encryption/content_keys.py",
        "gone = sum(codec.keys.shred(self._tenant) for codec in self._all)",
        "gone = sum(codec.keys.shred(self._tenant) for codec in self._codecs)",
        POINTS,
    ),
    Bug(
        "encryption: a shredded key stays in the file",
        "brainq/contrib/encryption/tenant_keys.py",
        '        gone = self._db.write(_SHRED, {"of_tenant": tenant}, durably=True)\n        self._scrub()',
        '        gone = self._db.write(_SHRED, {"of_tenant": tenant}, durably=True)',
        POINTS,
    ),
    Bug(
        "encryption: a shredded key stays in the file's log",
        "brainq/contrib/encryption/tenant_keys.py",
        '                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")\n',
        "",
        POINTS,
    ),
    Bug(
        "encryption: a key is shredded in word alone",
        "brainq/contrib/encryption/tenant_keys.py",
        '.values(state="shredded", wrapped="")',
        '.values(state="shredded")',
        POINTS,
    ),
    Bug(
        "encryption: keys that were leaving are current again",
        "brainq/contrib/encryption/tenant_keys.py",
        '_K.state == "leaving").values(state="old")',
        '_K.state == "leaving").values(state="current")',
        POINTS,
    ),
    Bug(
        "encryption: a shredded key leaves once more",
        "brainq/contrib/encryption/tenant_keys.py",
        '_LEAVE = update(tenant_keys).where(_TENANT, _K.state != "shredded")',
        "_LEAVE = update(tenant_keys).where(_TENANT)",
        POINTS,
    ),
    Bug(
        "encryption: the key before a rotation is current, too",
        "brainq/contrib/encryption/tenant_keys.py",
        '            self._db.write(_OLDER, {"of_tenant": tenant, "below": generation})',
        "            pass",
        POINTS,
    ),
    Bug(
        "encryption: a rotation makes the same generation again",
        "brainq/contrib/encryption/envelope.py",
        '        self.add_key(tenant, 1 if row is None else row["generation"] + 1)\n        self._current.pop',
        '        self.add_key(tenant, 1 if row is None else row["generation"])\n        self._current.pop',
        POINTS,
    ),
    Bug(
        "encryption: a process that rotates goes on with the old key",
        "brainq/contrib/encryption/envelope.py",
        "        self._current.pop(tenant, None)",
        "        pass",
        POINTS,
    ),
    Bug(
        "encryption: a removed key is kept as long as it took to read it",
        "brainq/contrib/encryption/envelope.py",
        "self._unwrap(row)), asked_at + self.cache_s)",
        "self._unwrap(row)), self._clock() + self.cache_s)",
        ("tests/contrib/encryption/test_envelope.py",),
    ),
)
