"""Files of crowds, sorters and labelling tools, each in the form that its tool documents."""

import csv
import json
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.pairs import Pairs

IDS = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]

MTURK = """
HITId HITTypeId Title Description
Keywords Reward CreationTime MaxAssignments
RequesterAnnotation AssignmentDurationInSeconds AutoApprovalDelayInSeconds Expiration
NumberOfSimilarHITs LifetimeInSeconds AssignmentId WorkerId
AssignmentStatus AcceptTime SubmitTime AutoApprovalTime
ApprovalTime RejectionTime RequesterFeedback WorkTimeInSeconds
LifetimeApprovalRate Last30DaysApprovalRate Last7DaysApprovalRate
"""
TOLOKA = [
    *("INPUT:image_left", "INPUT:image_right", "OUTPUT:result", "GOLDEN:result", "HINT:text"),
    *("ASSIGNMENT:link", "ASSIGNMENT:task_id", "ASSIGNMENT:assignment_id"),
    *("ASSIGNMENT:task_suite_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"),
    *("ASSIGNMENT:started", "ACCEPT:verdict", "ACCEPT:comment"),
]
ZOONIVERSE = """
classification_id user_name user_id user_ip
workflow_id workflow_name workflow_version created_at
gold_standard expert metadata annotations
subject_data subject_ids
"""


def table(path: Path, columns: list[str], rows: list[dict[str, str]], delimiter: str = ",") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def said(pairs: Pairs) -> list[tuple[str, str, bool, str]]:
    names, people = pairs.item_ids, pairs.annotator_names
    assert names is not None
    who = (
        [""] * len(pairs) if pairs.annotator is None else [str(people[k]) for k in pairs.annotator]
    )
    left, right = names[pairs.left].tolist(), names[pairs.right].tolist()
    return list(zip(left, right, pairs.same.tolist(), who))


# -- Mechanical Turk --------------------------------------------------------------------------


def mturk(path: Path, answers: list[dict[str, str]], inputs=("Input.left", "Input.right")) -> Path:
    pairs = [("a.jpg", "b.jpg"), ("a.jpg", "c.jpg"), ("c.jpg", "d.jpg")]
    rows = [
        {inputs[0]: left, inputs[1]: right, "WorkerId": f"A{k % 2}", "AssignmentStatus": "Approved"}
        | answer
        for k, ((left, right), answer) in enumerate(zip(pairs, answers))
    ]
    columns = [*MTURK.split(), *inputs, *(name for name in rows[0] if name.startswith("Answer."))]
    return table(path, [*columns, "Approve", "Reject"], rows)


def test_mturk_batch_results(tmp_path):
    answers = [{"Answer.same": "yes"}, {"Answer.same": "no"}, {"Answer.same": "same"}]
    found = Pairs.read(mturk(tmp_path / "batch.csv", answers), item_ids=IDS)
    assert said(found) == [
        ("a.jpg", "b.jpg", True, "A0"),
        ("a.jpg", "c.jpg", False, "A1"),
        ("c.jpg", "d.jpg", True, "A0"),
    ]


def test_rejected_work_does_not_count(tmp_path):
    answers = [
        {"Answer.q": "yes"},
        {"Answer.q": "no", "AssignmentStatus": "Rejected"},
        {"Answer.q": "no"},
    ]
    found = Pairs.read(mturk(tmp_path / "batch.csv", answers, ("Input.u", "Input.v")))
    assert len(found) == 2
    assert found.dropped == 1


def test_radio_buttons_of_a_crowd_form(tmp_path):
    answers = [
        {"Answer.same.yes": "true", "Answer.same.no": "false"},
        {"Answer.same.yes": "false", "Answer.same.no": "true"},
        {"Answer.same.yes": "false", "Answer.same.no": "false"},
    ]
    found = Pairs.read(mturk(tmp_path / "batch.csv", answers))
    assert found.same.tolist() == [True, False]
    assert found.dropped == 1


def test_task_answers_as_json(tmp_path):
    answers = [
        {"Answer.taskAnswers": '[{"same":{"different":false,"same":true}}]'},
        {"Answer.taskAnswers": '[{"category":{"label":"Different"}}]'},
        {"Answer.taskAnswers": '[{"same":"yes"}]'},
    ]
    assert Pairs.read(mturk(tmp_path / "b.csv", answers)).same.tolist() == [True, False, True]


def test_mturk_columns_can_be_named(tmp_path):
    answers = [{"Answer.why": "x", "Answer.kind": "yes"}] * 3
    path = mturk(tmp_path / "batch.csv", answers)
    with pytest.raises(InputError, match=r"Answer\.why, Answer\.kind; say which with same="):
        Pairs.read(path)
    assert Pairs.read(path, same="kind").n_same == 3
    with pytest.raises(InputError, match=r"no column first, nor Input\.first"):
        Pairs.read(path, left="first", right="second", same="kind")


# -- Toloka -----------------------------------------------------------------------------------


def toloka(path: Path) -> Path:
    def row(left: str, right: str, out: str, who: str, **more: str) -> dict[str, str]:
        return {
            "INPUT:image_left": left,
            "INPUT:image_right": right,
            "OUTPUT:result": out,
            "ASSIGNMENT:worker_id": who,
            "ASSIGNMENT:status": "APPROVED",
        } | {name.replace("_", ":", 1): value for name, value in more.items()}

    rows = [
        row("a.jpg", "b.jpg", "SAME", "w1"),
        row("a.jpg", "c.jpg", "DIFFERENT", "w2"),
        row("b.jpg", "c.jpg", "SAME", "w1", GOLDEN_result="DIFFERENT"),
        row("b.jpg", "c.jpg", "DIFFERENT", "w2", GOLDEN_result="DIFFERENT"),
        row("c.jpg", "d.jpg", "SAME", "w2", ASSIGNMENT_status="REJECTED"),
    ]
    return table(path, TOLOKA, rows, "\t")


def test_toloka_assignments(tmp_path):
    found = Pairs.read(toloka(tmp_path / "assignments.tsv"), item_ids=IDS)
    assert said(found) == [("a.jpg", "b.jpg", True, "w1"), ("a.jpg", "c.jpg", False, "w2")]


def test_toloka_golden_answers(tmp_path):
    path = toloka(tmp_path / "assignments.tsv")
    assert said(Pairs.read(path, item_ids=IDS, gold=True)) == [("b.jpg", "c.jpg", False, "")]


def test_toloka_without_an_output_column(tmp_path):
    path = table(tmp_path / "tasks.tsv", ["INPUT:u", "INPUT:v"], [{"INPUT:u": "a"}], "\t")
    with pytest.raises(
        InputError, match=r"a column OUTPUT:\.\.\. must be the answer, but there are none"
    ):
        Pairs.read(path)


# -- Zooniverse -------------------------------------------------------------------------------


def zooniverse(path: Path, annotations: list[object], subject: object) -> Path:
    rows = [
        {
            "classification_id": str(k),
            "user_name": f"volunteer{k}",
            "annotations": json.dumps(value),
            "subject_data": json.dumps(subject),
        }
        for k, value in enumerate(annotations)
    ]
    return table(path, ZOONIVERSE.split(), rows)


SUBJECT = {"70437": {"retired": None, "#left": "a.jpg", "#right": "b.jpg"}}


def test_zooniverse_classifications(tmp_path):
    tasks = [
        [{"task": "T0", "task_label": "Same kind?", "value": value}] for value in ("Yes", "No")
    ]
    found = Pairs.read(zooniverse(tmp_path / "c.csv", tasks, SUBJECT), item_ids=IDS)
    assert said(found) == [
        ("a.jpg", "b.jpg", True, "volunteer0"),
        ("a.jpg", "b.jpg", False, "volunteer1"),
    ]


def test_zooniverse_with_several_tasks_or_fields(tmp_path):
    tasks = [{"task": "T0", "value": "Yes"}, {"task": "T1", "value": "sharp"}]
    path = zooniverse(tmp_path / "c.csv", [tasks], SUBJECT)
    with pytest.raises(InputError, match=r"several tasks \(T0, T1\); say which with same="):
        Pairs.read(path)
    assert Pairs.read(path, same="T0").n_same == 1
    three = {"1": {"u": "a.jpg", "v": "b.jpg", "place": "Kew"}}
    with pytest.raises(InputError, match="two items are needed, but subject_data has u, v, place"):
        Pairs.read(zooniverse(tmp_path / "d.csv", [tasks[:1]], three))


# -- Label Studio, flat -----------------------------------------------------------------------

FLAT = [
    {
        "id": 1,
        "image1": "/data/local-files/?d=set/a.jpg",
        "image2": "/data/local-files/?d=set/b.jpg",
        "kind": "Same",
        "annotator": 3,
        "annotation_id": 11,
        "created_at": "2026-01-01T10:00:00Z",
        "updated_at": "2026-01-01T10:00:00Z",
        "lead_time": 3.2,
    },
    {
        "id": 2,
        "image1": "/data/local-files/?d=set/a.jpg",
        "image2": "/data/local-files/?d=set/c.jpg",
        "kind": "Different",
        "annotator": 4,
        "annotation_id": 12,
        "created_at": "2026-01-01T10:00:00Z",
        "updated_at": "2026-01-01T10:00:00Z",
        "lead_time": 2.0,
    },
]
FLAT_SAID = [("a.jpg", "b.jpg", True, "3"), ("a.jpg", "c.jpg", False, "4")]


def test_label_studio_json_min(tmp_path):
    path = tmp_path / "min.json"
    path.write_text(json.dumps(FLAT))
    assert said(Pairs.read(path, item_ids=IDS)) == FLAT_SAID


def test_label_studio_calls_people_by_two_names(tmp_path):
    path = tmp_path / "min.json"
    rows = [{"completed_by" if k == "annotator" else k: row[k] for k in row} for row in FLAT]
    path.write_text(json.dumps(rows))
    assert said(Pairs.read(path, item_ids=IDS)) == FLAT_SAID


def test_label_studio_csv(tmp_path):
    columns = sorted(FLAT[0])
    path = table(tmp_path / "flat.csv", columns, [{k: str(v) for k, v in r.items()} for r in FLAT])
    assert said(Pairs.read(path, item_ids=IDS)) == FLAT_SAID


def test_label_studio_without_an_answer(tmp_path):
    path = tmp_path / "min.json"
    path.write_text(json.dumps([{k: v for k, v in row.items() if k != "kind"} for row in FLAT]))
    with pytest.raises(
        InputError, match=r"which field is the answer; .* image1, image2; say which"
    ):
        Pairs.read(path)


# -- JSON Lines -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.json", "answers.ndjson"])
def test_json_lines(tmp_path, name):
    path = tmp_path / name
    path.write_text(
        '{"left": "a.jpg", "right": "b.jpg", "same": true, "annotator": "ann"}\n\n'
        '{"left": "a.jpg", "right": "c.jpg", "same": false, "annotator": "bob"}\n'
    )
    assert said(Pairs.read(path, item_ids=IDS)) == [
        ("a.jpg", "b.jpg", True, "ann"),
        ("a.jpg", "c.jpg", False, "bob"),
    ]


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"left": 0, "right": 1, "same": 1}\n{"left": 0, "rig\n')
    with pytest.raises(InputError, match="line 2 is not valid JSON"):
        Pairs.read(path)


# -- sorts ------------------------------------------------------------------------------------

SORTED = {
    ("a.jpg", "b.jpg", True, "ann"),
    ("a.jpg", "c.jpg", False, "ann"),
    ("b.jpg", "c.jpg", False, "ann"),
    ("a.jpg", "c.jpg", True, "bob"),
}


def unordered(pairs: Pairs) -> set[tuple[str, str, bool, str]]:
    return {(*sorted((u, v)), same, who) for u, v, same, who in said(pairs)}


def test_sorts_as_a_table_of_items_and_people(tmp_path):
    path = tmp_path / "sorts.csv"
    path.write_text("item,ann,bob\na.jpg,red,1\nb.jpg,red,\nc.jpg,blue,1\n")
    assert unordered(Pairs.read(path, format="sorts", item_ids=IDS)) == SORTED
    with pytest.raises(InputError, match=r"lacks the columns left, right, same; .*--format"):
        Pairs.read(path)


def test_sorts_a_row_for_each_item_and_person(tmp_path):
    path = tmp_path / "sorts.csv"
    path.write_text(
        "item,annotator,pile\na.jpg,ann,red\nb.jpg,ann,red\nc.jpg,ann,blue\n"
        "a.jpg,bob,1\nb.jpg,bob,\nc.jpg,bob,1\n"
    )
    assert unordered(Pairs.read(path, item_ids=IDS)) == SORTED


@pytest.mark.parametrize(
    "content",
    [
        {"ann": [["a.jpg", "b.jpg"], ["c.jpg"]], "bob": [["a.jpg", "c.jpg"]]},
        [
            {"annotator": "ann", "piles": [["a.jpg", "b.jpg"], ["c.jpg"]]},
            {"annotator": "bob", "piles": [["a.jpg", "c.jpg"]]},
        ],
    ],
)
def test_sorts_as_lists_of_piles(tmp_path, content):
    path = tmp_path / "piles.json"
    path.write_text(json.dumps(content))
    assert unordered(Pairs.read(path, item_ids=IDS)) == SORTED


def test_one_sort_alone(tmp_path):
    path = tmp_path / "piles.json"
    path.write_text('[["a.jpg", "b.jpg"], ["c.jpg"]]')
    found = Pairs.read(path)
    assert found.annotator is None
    assert found.same.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("content", "said_of_it"),
    [
        ('[["a", "b"], ["a"]]', "'a' lies in two piles"),
        ('[["a"]]', "no sort of two items"),
        ('{"ann": [["a", "b"]], "bob": 3}', "neither dedupe's"),
        ('[{"piles": [["a", "b"]]}, {"piles": "x"}]', "sort 1: a sort must be a list of piles"),
    ],
)
def test_what_is_no_sort_is_refused(tmp_path, content, said_of_it):
    path = tmp_path / "piles.json"
    path.write_text(content)
    with pytest.raises(InputError, match=said_of_it):
        Pairs.read(path)


def test_an_item_sorted_twice_is_refused(tmp_path):
    path = tmp_path / "sorts.csv"
    path.write_text("item,annotator,pile\na,ann,1\na,ann,2\nb,ann,1\n")
    with pytest.raises(InputError, match="'a' into a pile twice by ann"):
        Pairs.read(path)


# -- grades -----------------------------------------------------------------------------------

DUREL = """identifier1\tidentifier2\tannotator\tjudgment\tcomment\tlemma
a.jpg\tb.jpg\tann\t4.0\t \tbank
a.jpg\tc.jpg\tann\t2.0\t \tbank
b.jpg\tc.jpg\tbob\t0.0\t \tbank
c.jpg\td.jpg\tbob\t1\t \tbank
"""


def test_durel_grades_count_by_their_distance_from_the_middle(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_text(DUREL)
    found = Pairs.read(path, item_ids=IDS)
    assert said(found) == [
        ("a.jpg", "b.jpg", True, "ann"),
        ("a.jpg", "c.jpg", False, "ann"),
        ("c.jpg", "d.jpg", False, "bob"),
    ]
    assert found.weight.tolist() == pytest.approx([1, 1 / 3, 1])
    assert found.dropped == 1


def test_durel_grades_by_a_threshold(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_text(DUREL)
    found = Pairs.read(path, item_ids=IDS, threshold=1.5)
    assert found.same.tolist() == [True, True, False]
    assert found.weight is None


def test_a_grade_off_the_scale_is_refused(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_text(DUREL.replace("4.0", "5"))
    with pytest.raises(
        InputError, match="line 2: judgment is '5', which is not a grade from 1 to 4"
    ):
        Pairs.read(path)


def test_durel_without_a_judgment(tmp_path):
    path = tmp_path / "judgments.csv"
    path.write_text(DUREL.replace("judgment", "grade"))
    with pytest.raises(InputError, match="lacks the column judgment"):
        Pairs.read(path)


def test_other_grades_by_a_threshold(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,same\n0,1,0.9\n0,2,0.5\n1,2,\n")
    found = Pairs.read(path, threshold=0.5)
    assert found.same.tolist() == [True, False]
    path.write_text("left,right,same\n0,1,often\n")
    with pytest.raises(InputError, match="same is 'often', which is not a number"):
        Pairs.read(path, threshold=0.5)
