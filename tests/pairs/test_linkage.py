"""Pairs that record-linkage tools marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs
from pair_files import rows, write


class TestMarkedPairs:
    def test_splink(self, tmp_path: Path) -> None:
        head = "unique_id_l,unique_id_r,clerical_match_score"
        found = Pairs.read(write(tmp_path, f"{head},annotator\na,b,1,x\nb,c,0.25,y\na,c,0.5,x\n"))
        assert rows(found) == [("a", "b", True, "x", 1.0), ("b", "c", False, "y", 0.5)]
        certain = Pairs.read(write(tmp_path, f"{head}\na,b,1\nb,c,0\n"))
        assert rows(certain) == [("a", "b", True), ("b", "c", False)]
        for score in ("1.01", "-0.1"):
            words = (
                rf"^x\.csv, line 3: clerical_match_score is {score}, but must lie between 0 and 1"
            )
            with pytest.raises(InputError, match=words):
                Pairs.read(write(tmp_path, f"{head}\na,b,1\nb,c,{score}\n"))
        with pytest.raises(InputError, match=r"lacks the column clerical_match_score"):
            Pairs.read(write(tmp_path, "unique_id_l,unique_id_r\na,b\n"))

    def test_splink_of_several_sources(self, tmp_path: Path) -> None:
        head = "source_dataset_l,unique_id_l,source_dataset_r,unique_id_r,clerical_match_score\n"
        found = Pairs.read(write(tmp_path, f"{head}s,1,t,1,1\ns,1,t,2,0\n"))
        assert rows(found) == [("s-__-1", "t-__-1", True), ("s-__-1", "t-__-2", False)]
        one = Pairs.read(write(tmp_path, f"{head}s,1,s,2,1\n"))
        assert (one.left.tolist(), one.right.tolist(), one.item_ids) == ([1], [2], None)
        with pytest.raises(InputError, match=r"line 3: source_dataset is blank"):
            Pairs.read(write(tmp_path, f"{head}s,1,t,1,1\n,1,t,1,1\n"))
        with pytest.raises(InputError, match=r"line 2: unique_id is blank"):
            Pairs.read(write(tmp_path, f"{head}s,,t,a,1\n"))

    def test_zingg(self, tmp_path: Path) -> None:
        text = "z_cluster,z_isMatch,id,z_zid,annotator\n"
        text += "2,1,a,7,x\n1,0.0,c,9,y\n2,1,b,8,x\n1,0.0,a,7,y\n3,2,b,8,x\n3,2,c,9,x\n"
        text += "4,-1,a,7,x\n4,-1,c,9,x\n5,,a,7,x\n5,,c,9,x\n"
        found = Pairs.read(write(tmp_path, text))
        assert rows(found) == [("a", "b", True, "x"), ("c", "a", False, "y")]
        assert found.dropped == 3
        by = Pairs.read(write(tmp_path, text), item="z_zid", named=True)
        assert rows(by)[0] == ("7", "8", True, "x")
        own = Pairs.read(write(tmp_path, "z_cluster,z_isMatch,z_zid\n1,1,p\n1,1,q\n"))
        assert rows(own) == [("p", "q", True)]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "1,1,a\n1,0,b\n",
                r"^x\.csv, line 3: z_isMatch differs from the other row of its z_clus",
            ),
            ("1,1,a\n1,1,b\n2,1,c\n", r"^z_cluster 2 has 1 rows, but a marked pair has two"),
            ("1,7,a\n1,7,b\n", r"^x\.csv, line 2: z_isMatch is '7', which is none of 1, 0 and 2"),
            (",1,a\n1,1,b\n", r"^x\.csv, line 2: z_cluster is blank"),
        ],
    )
    def test_mistakes_of_zingg(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            Pairs.read(write(tmp_path, f"z_cluster,z_isMatch,id\n{text}"))
