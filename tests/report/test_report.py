"""The report says what the run holds, escapes all of it, and loads nothing."""

from __future__ import annotations

import base64
import json
import re
import shutil
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.report import figures, findings, page, render_report, tables
from likewise.report.colours import class_colours, contrast, heat_level, heat_rules, parse
from likewise.report.contents import read_contents
from likewise.report.pictures import image_files
from likewise.runs import Run
from report_runs import HOSTILE, small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("runs") / "digits")


@pytest.fixture(scope="module")
def html(run: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    return render_report(run.folder, tmp_path_factory.mktemp("page") / "report.html").read_text()


class Outline(HTMLParser):
    """The tags of a page with their attributes, and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._silent = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.text += data


def embedded(text: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def test_every_section_is_there_and_linked(html: str) -> None:
    outline = Outline(html)
    ids = {attributes.get("id") for _, attributes in outline.tags}
    links = {a["href"] for tag, a in outline.tags if tag == "a"}
    for anchor, _ in page.SECTIONS:
        assert anchor in ids
        assert f"#{anchor}" in links
    assert "3 classes found in 150 items, learned from 1,500 judgements by 5 people" in html


def test_it_loads_nothing(html: str) -> None:
    outline = Outline(html)
    for tag, attributes in outline.tags:
        for name in ("src", "href"):
            value = attributes.get(name) or ""
            assert value.startswith(("data:", "#")) or not value, (tag, value)
    assert "http:" not in html.replace("http-equiv", "")
    assert "https:" not in html
    assert "url(" not in html


def test_the_policy_allows_this_script_and_no_other(html: str) -> None:
    import hashlib

    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in html or f"'sha256-{digest}'" in html
    assert "default-src 'none'" in html


def test_whatever_people_type_is_text(tmp_path: Path) -> None:
    ids = [f"{HOSTILE}{k}" for k in range(150)]
    run = small_run(
        tmp_path / "run",
        name=HOSTILE,
        class_names=[f"{HOSTILE}{k}" for k in range(3)],
        ids=ids,
        features=True,
    )
    text = render_report(run.folder, tmp_path / "report.html").read_text()
    outline = Outline(text)
    assert [tag for tag, _ in outline.tags].count("script") == 2
    assert not any("onerror" in a or a.get("src") == "x" for _, a in outline.tags)
    assert not any(tag == "img" for tag, _ in outline.tags)
    assert HOSTILE in outline.text
    assert embedded(text)["map"]["names"] == ids
    assert embedded(text)["names"][2] == f"{HOSTILE}2"


def test_the_map_holds_every_item(html: str, run: Run) -> None:
    data = embedded(html)["map"]
    x = np.frombuffer(base64.b64decode(data["x"]), "<u2").astype(float)
    y = np.frombuffer(base64.b64decode(data["y"]), "<u2").astype(float)
    assert len(x) == data["n"] == 150
    inside = (x > 0) & (x < 65535) & (y > 0) & (y < 65535)
    assert inside.mean() > 0.98
    # One scale for both axes: distances on the page are proportional to those in the run.
    places = np.stack([x, y], axis=1)[inside]
    true = np.asarray(run.map, float)[inside]
    ratio = np.linalg.norm(places[1:] - places[0], axis=1) / np.linalg.norm(
        true[1:] - true[0], axis=1
    )
    assert np.allclose(ratio, np.median(ratio), rtol=0.02)
    classes = np.frombuffer(base64.b64decode(data["cls"]), "<u2")
    assert np.array_equal(classes, np.asarray(run.posterior, float).argmax(axis=1))
    assert data["truthNames"] == ["0", "1", "2"]


def test_pictures_are_there_once_and_are_of_the_right_items(html: str, run: Run) -> None:
    import io

    from PIL import Image

    pictures = embedded(html)["pictures"]
    shown = {a["data-item"] for tag, a in Outline(html).tags if tag == "img"}
    assert shown == set(pictures)
    item = next(iter(pictures))
    raw = base64.b64decode(pictures[item].split(",", 1)[1])
    pixels = np.asarray(Image.open(io.BytesIO(raw)))
    where = np.searchsorted(run.thumbnail_of, int(item))
    np.testing.assert_array_equal(pixels, run.thumbnails[where])


def test_the_confusion_matrix_is_under_the_best_matching(run: Run) -> None:
    contents = read_contents(run)
    found = contents.confusion()
    assert found is not None
    predicted = contents.predicted
    # A permutation of learned classes changes nothing: brute force over all matchings.
    from itertools import permutations

    truth = np.asarray(contents.truth).astype(int)
    best = max((np.array(order)[predicted] == truth).mean() for order in permutations(range(3)))
    assert found.accuracy == pytest.approx(best)
    assert found.counts.sum() == 150
    diagonal = [found.counts[row, column] for row, column in enumerate(found.matched)]
    assert sum(diagonal) == round(best * 150)


def test_a_mistake_says_which_true_class_the_learned_one_stands_for(run: Run) -> None:
    from likewise.report.contents import Confusion

    counts = np.array([[90, 10, 0], [0, 70, 30]])  # columns: learned 2 is ant, 0 is bee, 1 is none
    found = Confusion(["ant", "bee"], [2, 0, 1], counts, [0, 1], 0.8)
    matrix = tables.confusion_matrix(read_contents(run), found)
    assert matrix is not None
    assert matrix.column_names == ["2", "0", "1"]
    assert matrix.top == [
        ("bee", "1 (stands for none)", "30.0%"),
        ("ant", "0 (stands for bee)", "10.0%"),
    ]
    assert matrix.rows[0][0].tip == "ant learned as 2 (stands for ant): 90.0%"
    from dataclasses import replace

    named = replace(read_contents(run), class_names=["bee", "bug", "ant"])
    matrix = tables.confusion_matrix(named, found)
    assert matrix is not None
    assert matrix.top[1] == ("ant", "bee", "10.0%")


def test_truth_from_a_file_or_an_array(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    rows = "\n".join(f"{k},{'odd' if k % 2 else 'even'}" for k in range(150))
    path.write_text(f"item,class\n{rows}\n")
    given = read_contents(run, path).truth
    assert given is not None
    assert given[:2].tolist() == ["even", "odd"]
    np.testing.assert_array_equal(read_contents(run, given).truth, given)
    with pytest.raises(InputError, match="150 items but 3 true classes"):
        read_contents(run, ["a", "b", "c"])
    with pytest.raises(InputError, match="no file"):
        read_contents(run, tmp_path / "none.csv")


def test_pictures_from_a_folder_where_items_are_features(tmp_path: Path) -> None:
    from PIL import Image

    run = small_run(tmp_path / "run", features=True, with_truth=False)
    folder = tmp_path / "photos"
    folder.mkdir()
    for k in range(150):
        Image.new("RGB", (200, 120), (k, 0, 0)).save(folder / f"{k:03d}.png")
    (folder / "notes.txt").write_text("not a picture")
    text = render_report(run.folder, tmp_path / "a.html", pictures=folder).read_text()
    assert len(embedded(text)["pictures"]) > 20
    without = render_report(run.folder, tmp_path / "b.html").read_text()
    assert embedded(without)["pictures"] == {}
    assert 'id="truth"' not in without
    assert image_files(folder)["7"] == folder / "007.png"
    with pytest.raises(InputError, match="there are no images"):
        image_files(run.folder)


def test_names_given_after_the_run_are_shown(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    path = run.model / "model.json"
    about = json.loads(path.read_text())
    about["classes"] = ["ant", "bee", "cat"]
    path.write_text(json.dumps(about))
    assert read_contents(Run.open(run.folder)).class_names == ["ant", "bee", "cat"]


@pytest.mark.parametrize("missing", ["items.npz", "report.json", "history.csv", "metrics.json"])
def test_a_run_that_is_not_whole(tmp_path: Path, missing: str) -> None:
    run = small_run(tmp_path / "run")
    (run.folder / missing).unlink()
    with pytest.raises(InputError, match="not a whole run"):
        render_report(run.folder, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def places(value, place=()):
    """Every place in nested JSON, of lists the first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, part in inner:
        yield (*place, key)
        if isinstance(part, dict | list):
            yield from places(part, (*place, key))


def changed(whole: str, place: tuple, odd: object) -> str:
    content = json.loads(whole)
    target = content
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = odd
    return json.dumps(content)


@pytest.mark.parametrize("name", ["report.json", "metrics.json", "config.json"])
def test_a_run_whose_files_were_changed_is_shown_or_refused(run: Run, tmp_path, name) -> None:
    """Each field in turn is of another kind: the page is right, or there is an InputError."""
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    whole = (folder / name).read_text()
    refused = 0
    odd = cycle([None, "<b onclick=1>", [], -1, {"x": 1}])
    for place in places(json.loads(whole)):
        (folder / name).write_text(changed(whole, place, next(odd)))
        try:
            text = render_report(folder, tmp_path / "report.html").read_text()
        except InputError:
            refused += 1
        else:
            assert "<b onclick" not in text
    assert name == "config.json" or refused > 2


def test_warnings_are_in_words(run: Run) -> None:
    from dataclasses import replace

    contents = read_contents(run)
    empty = replace(contents, sizes=np.array([150, 0, 0]))
    assert "2 of 3 classes are empty." in findings.warnings(empty)
    sparse = dict(contents.judgements, judgements_per_item=[0, 2, 9], items_judged=140)
    words = " ".join(findings.warnings(replace(contents, judgements=sparse)))
    assert "2 judgements or fewer" in words
    assert "10 items were never judged" in words
    assert contents.annotators is not None
    assert len(findings.uninformative(contents.annotators)) == 1
    people = {
        "annotator": ["looks", "tosses", "swaps"],
        "same_given_same": [0.9, 0.5, 0.2],
        "same_given_different": [0.1, 0.5, 0.8],
    }
    told = " ".join(findings.warnings(replace(contents, annotators=people)))
    assert "1 of 3 people answer nearly the same" in told
    assert "1 of 3 people mostly answer the wrong way round" in told
    assert findings.swapped(people) == ["swaps"]
    wrong = {
        "held_out": True,
        "bins": {"predicted": [0.1, 0.9], "observed": [0.5, 0.7], "judgements": [300, 100]},
    }
    assert findings.calibration_gap(wrong) == pytest.approx(0.35)
    words = " ".join(findings.warnings(replace(contents, calibration=wrong)))
    assert "differ by 35 points" in words


def test_it_says_when_the_number_of_classes_was_found(run: Run) -> None:
    from dataclasses import replace

    contents = read_contents(run)
    assert findings.choice(contents) == "mcl: as asked"
    found = replace(contents, config={"parameters": {"n_classes": "auto"}})
    assert findings.choice(found).endswith("the number of classes was read off the judgements")


def test_mistaken_share_weighs_classes_by_size(run: Run) -> None:
    from dataclasses import replace

    matrix = np.array([[0.9, 0.1, 0], [0, 1, 0], [0.5, 0, 0.5]])
    contents = replace(read_contents(run), transition=matrix, sizes=np.array([50, 100, 50]))
    assert findings.mistaken_share(contents) == pytest.approx(0.25 * 0.1 + 0.25 * 0.5)


@pytest.mark.parametrize(("asked", "source"), [("estimate", "estimated"), ([[1.0]], "given")])
def test_a_given_t_is_not_called_estimated(tmp_path: Path, asked: object, source: str) -> None:
    config = {"parameters": {"transition": asked}}
    run = small_run(tmp_path / "run", config=config)
    notes = [tile.note for tile in findings.tiles(read_contents(run))]
    assert f"as {source}" in notes
    text = page.render(read_contents(run))
    card = (run.folder / "model_card.md").read_text()
    other = "given" if source == "estimated" else "estimated"
    assert f"in percent, as {source}." in text
    assert f"of the time, as {source}" in card
    assert f"as {other}" not in text + card


def test_a_card_knows_a_given_t_as_an_array() -> None:
    from likewise.runs.verdict import source_of_transition

    assert source_of_transition({"parameters": {"transition": np.eye(2)}}) == "as given"
    assert source_of_transition({"parameters": {"transition": None}}) == "as estimated"
    assert source_of_transition({}) == "as estimated"


def test_heat_maps_are_readable_on_every_shade() -> None:
    for scheme in ("light", "dark"):
        rules = heat_rules(scheme)
        assert [level for level, _, _ in rules] == list(range(21))
        for _, ground, ink in rules:
            assert contrast(parse(ground), parse(ink)) >= 4.5
    assert heat_level(0) == 0
    assert heat_level(1e-6) == 1
    assert heat_level(1) == 20
    assert len(set(class_colours(100))) == 100


def test_large_matrices_are_packed_and_small_ones_have_numbers(run: Run) -> None:
    from dataclasses import replace

    contents = read_contents(run)
    small = tables.transition_matrix(contents)
    assert small is not None
    assert small.packed is None
    assert [cell.text for cell in small.rows[0]] == ["75", "12", "12"]
    assert small.top == []  # all mistakes alike: no list of the most common ones
    shares = np.eye(40) * 0.8
    shares[3, 7] = 0.2
    names = [f"class {k}" for k in range(40)]
    large = tables.transition_matrix(replace(contents, transition=shares, class_names=names))
    assert large is not None
    assert large.packed is not None
    assert large.top == [("3", "7", "20.0%")]
    packed = np.frombuffer(base64.b64decode(large.packed["shares"]), np.uint8).reshape(40, 40)
    assert packed[3, 7] == 51
    assert packed[3, 3] == 204


def test_learning_curves_mark_the_chosen_epoch_of_the_last_stage() -> None:
    history = [
        {"method": stage, "epoch": k, "loss": 1.0 / (k + 1), "held_out": 2.0, "lr": 0.1}
        for stage in ("mcl", "mns")
        for k in range(900)
    ]
    charts = figures.learning_curves(history, best_epoch=401)
    titles = [
        "mcl: training loss",
        "mcl: held-out loss",
        "mns: training loss",
        "mns: held-out loss",
    ]
    assert [chart.title for chart in charts] == titles
    assert [chart.chosen is not None for chart in charts] == [False, False, True, True]
    assert charts[2].chosen_text == "epoch 402 kept"
    assert len(charts[2].hits) <= figures.MAX_POINTS + 2
    assert any("epoch 402:" in hit.tip for hit in charts[2].hits)
    rounds = [{"round": 1, "evidence": -3.0}, {"round": 2, "evidence": -2.0}]
    assert figures.learning_curves(rounds, 1)[0].chosen_text == "round 2 kept"
    assert figures.learning_curves([], 0) == []


def test_texts_of_drawings_and_headers_are_whole(html: str) -> None:
    calibration = html[html.index('id="calibration"') :]
    height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', calibration).group(1))
    label = re.search(r'y="([\d.]+)">predicted P\(said same\)', calibration)
    assert height - float(label.group(1)) >= 4  # letters of 12 reach so far below their line
    headers = re.search(r"\.plain thead th \{(.*?)\}", page.stylesheet(), re.S).group(1)
    assert "overflow-wrap: normal" in headers


def test_people_worse_than_chance_are_in_the_histogram() -> None:
    chart = figures.reliability_histogram({"reliability": [-0.32, 0.0, 0.5, 0.5, 1.0]})
    assert chart is not None
    assert len(chart.bars) == 4
    assert [tick.text for tick in chart.ticks] == ["-0.25", "0", "0.25", "0.5", "0.75", "1"]
    heights = [bar[3] for bar in chart.bars]
    assert heights[2] == pytest.approx(2 * heights[0], abs=0.02)
    assert chart.bars[0][4].startswith("1 person from -0.35 to -0.30")
    assert figures.reliability_histogram({"reliability": [1.0]}) is None


def test_ticks_span_the_data_and_are_round() -> None:
    assert figures.nice_ticks(0.13, 0.87) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    for low, high in [(0, 1e-9), (-5, 12345), (3, 3), (1e6, 1e6 + 1)]:
        ticks = figures.nice_ticks(low, high)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 2 <= len(ticks) <= 8


def test_numbers_are_told_plainly() -> None:
    assert page.count(1234567) == "1,234,567"
    assert page.count(2.5) == "2.5"
    assert page.count(None) == "–"
    assert page.percent(1) == "100%"
    assert page.percent(0.1234) == "12.3%"
    assert page.probability(0.99999) == "> 99.9%"


def test_wilson_interval() -> None:
    low, high = figures.wilson(0.5, 100)
    assert (low, high) == pytest.approx((0.4038, 0.5962), abs=1e-3)
    assert figures.wilson(0.0, 10)[0] == 0.0


def test_truth_by_the_items_own_names(tmp_path: Path) -> None:
    ids = [f"photo {k}" for k in range(150)]
    run = small_run(tmp_path / "run", ids=ids, with_truth=False)
    path = tmp_path / "truth.csv"
    rows = [f"{name},{'odd' if k % 2 else 'even'}" for k, name in enumerate(ids)]
    path.write_text("item,class\n" + "\n".join(reversed(rows)) + "\n")
    truth = read_contents(run, path).truth
    assert truth is not None
    assert truth[:3].tolist() == ["even", "odd", "even"]
    path.write_text("item,class\n" + "\n".join(rows[:100]) + "\n")
    with pytest.raises(InputError, match=r"no class for 50 of 150 items, such as 'photo 100'"):
        read_contents(run, path)


def test_pictures_that_cannot_be_read_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    from likewise.report import pictures

    run = small_run(tmp_path / "run", features=True, with_truth=False)
    contents = read_contents(run)
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "0.png").write_bytes(b"\x89PNG but no more")
    for k in (1, 2):
        Image.new("RGB", (40, 40), (0, 99, 0)).save(folder / f"{k}.png")
    found = pictures.pictures_of(contents, [0, 1, 2, 3, 1], folder)
    assert list(found) == [1, 2]
    monkeypatch.setattr(pictures, "BUDGET", len(found[1]))
    assert list(pictures.pictures_of(contents, [0, 1, 2], folder)) == [1]
    monkeypatch.setattr("likewise.io.images.MAX_PIXELS", 100)
    assert pictures.pictures_of(contents, [1, 2], folder) == {}
    with pytest.raises(InputError, match="no folder"):
        pictures.image_files(tmp_path / "nowhere")


def test_a_channel_by_classes_is_a_heat_map(run: Run) -> None:
    from dataclasses import replace

    table = [[0.9, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.7]]
    contents = replace(read_contents(run), channel={"kind": "confusion", "p_same": table})
    matrix = tables.channel_matrix(contents)
    assert matrix is not None
    assert [cell.text for cell in matrix.rows[1]] == ["30", "80", "20"]
    assert "depends on both" in findings.channel_words(contents.channel)
    assert "90% of the time" in findings.channel_words({"kind": "rate", "a": 0.9, "b": 0.2})
    assert findings.channel_words(None) == ""


def test_of_very_many_people_the_best_and_the_worst_are_shown() -> None:
    names = [f"p{k}" for k in range(700)]
    shown, left_out = tables.people(
        {"annotator": names, "reliability": [k / 700 for k in range(700)]}
    )
    assert (len(shown), left_out) == (500, 200)
    assert (shown[0].name, shown[-1].name) == ("p699", "p0")
    assert shown[0].judgements is None
    assert tables.people(None) == ([], 0)


def test_names_of_any_length_and_script_do_not_swell_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.report import scatter

    ids = ["狗" * 5000 + str(k) for k in range(150)]
    run = small_run(tmp_path / "run", name="x" * 5000, ids=ids, features=True)
    text = render_report(run.folder, tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    names = embedded(text)["map"]["names"]
    assert names[0] == "狗" * 119 + "…"
    assert scatter.size_in_page(["狗&"]) == len('["狗\\u0026"]'.encode())
    monkeypatch.setattr(scatter, "MAX_NAMES", 1000)
    assert scatter.size_in_page(["\udcff"]) == 5
    assert scatter.pack_map(read_contents(run))["names"] is None


def test_file_names_that_are_no_text_are_shown_as_well_as_can_be(tmp_path: Path) -> None:
    ids = [f"caf\udce9 {k}.jpg" for k in range(150)]
    run = small_run(tmp_path / "run", ids=ids, features=True)
    text = render_report(run.folder, tmp_path / "report.html").read_text(encoding="utf-8")
    assert embedded(text)["map"]["names"][0] == "caf? 0.jpg"


def test_learning_is_told_by_what_was_trained() -> None:
    from likewise.report.findings import stages

    rounds = [{"method": "em", "epoch": k, "evidence": -float(k)} for k in range(3)]
    epochs = [{"method": "joint", "epoch": k, "loss": 1.0 / (k + 1)} for k in range(3)]
    taught = [{**row, "method": "teacher 1"} for row in epochs] + epochs
    assert stages(rounds) == {"em"}
    assert stages(epochs) == set()
    assert stages(rounds + taught) == {"em", "teachers"}
    assert [chart.unit for chart in figures.learning_curves(rounds + epochs, 1)] == [
        "round",
        "epoch",
    ]
