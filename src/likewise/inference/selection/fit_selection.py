"""Which start and which head to take, and whether the features earn a say: by unseen judgements.

Everything is fitted to most of the judgements first and asked about the rest. Evidence cannot
compare these: the density of the features outvotes people, and a head that follows every judgement
explains its own best. Errors are a jackknife over items; among starts and heads that foretell
alike, the evidence of all judgements decides. Heads are loosened step by step from what a stiff
one found, and the most flexible one begins from every start; one that tells neighbours apart which
the other does not may have learned people's mistakes, and is not taken. What is simpler is kept: no
features unless they foretell clearly better, than none and than those of other items would (a
permutation test), or make all judgements far likelier than those do. That people mistake an item is
believed only where features tell a good part of what people see, few items lie between the
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from likewise.inference.em import State, first_targets, fold_of_items
from likewise.inference.heads.cross_fitting import Head, judged_score
from likewise.inference.heads.ensemble import TINY
from likewise.inference.heads.gaussian import GaussianHead
from likewise.inference.heads.silent_heads import (
    AsFoundHead,
    FlatHead,
    PerceivedHead,
    PriorHead,
    ShuffledHead,
)
from likewise.inference.lifting.neighbours import Neighbours, nearest_neighbours
from likewise.inference.partition.sorts import Sorts
from likewise.inference.problem import JointProblem
from likewise.inference.propagation.edge_posteriors import edge_statistics
from likewise.inference.propagation.graph import Graph
from likewise.inference.propagation.known import in_known_order
from likewise.inference.propagation.posterior import entropy, guess
from likewise.inference.propagation.sort_graph import SortGraph, pairwise_channel, sorted_starts
from likewise.inference.selection.as_found import as_found
from likewise.inference.selection.final_fit import begun_anew, fit_chosen
from likewise.inference.selection.ranking import (
    HELD_OUT,
    answer_log_likelihood,
    by_pair,
    held_out,
)
from likewise.inference.selection.start_selection import (
    BY_POINTS,
    Start,
    StartFunction,
    cluster_items,
    distinct,
    from_network,
    from_partition,
    promising_starts,
    select_starts,
)
from likewise.inference.selection.trials import (
    GOOD_PART,
    Trial,
    ahead,
    as_perceived,
    explains_more,
    fit_with,
    foretold,
    has_faded,
    is_better,
    most_telling,
    tried,
)
from likewise.noise.channels import Channel, RateChannel
from likewise.noise.estimation import likelihood_transition

CLEARLY = 2.0  # standard errors
A_NAT = 1.0  # of likelihood, by which groups that were found may be behind: they are searched anew
BY_FEATURES = (*BY_POINTS, from_network)


def fit_selected(
    problem: JointProblem, channel: Channel, confusions: bool = True
) -> tuple[State, Head]:
    """EM on all judgements, from the start and with the head that foretell unseen ones best."""
    graph = problem.graph
    held = held_out(graph, problem.generator)
    pairs = problem.pairs.explicit().select((~held).cpu().numpy())
    seen = replace(problem, graph=graph.select(~held), pairs=pairs)
    unseen = graph.select(held)
    starts = select_starts(seen, channel, confusions)
    chosen = select_trial(seen, unseen, starts)
    state = fit_chosen(problem, channel, chosen)
    if has_faded(state):  # too few answers for EM to hold on to any class
        chosen = max(_as_found(seen, unseen, starts, promising_starts(seen)), key=foretold)
        state = fit_chosen(problem, channel, chosen)
    elif not isinstance(chosen.head, AsFoundHead):
        state = begun_anew(problem, channel, chosen, state, _neighbours(problem))
    return state, chosen.head


def fit_sorted(problem: JointProblem, sorts: Sorts) -> tuple[State, Head] | None:
    """The same where judgements are sorts: rows of piles are held out. None where piles say little.

    The last state's channel is of pairs, as for single judgements.
    """
    known = problem.graph.known
    whole = replace(problem, graph=SortGraph.of(sorts, problem.graph.device, known))
    held = torch.rand(len(whole.graph), generator=problem.generator) < HELD_OUT
    seen = replace(whole, graph=whole.graph.select(~held.to(whole.graph.device)))
    assert isinstance(seen.graph, SortGraph)
    beliefs = sorted_starts(seen.graph, problem.n_classes, cluster_items(problem), problem.rng)
    if beliefs is None:
        return None
    starts: list[Start] = [(in_known_order(belief, known), RateChannel()) for belief in beliefs]
    chosen = select_trial(seen, whole.graph.select(held.to(whole.graph.device)), starts)
    state = fit_with(whole, chosen.head, (chosen.state.targets.classes.float(), RateChannel()))
    channel = pairwise_channel(state.targets.perceived, problem.graph)
    return replace(state, channel=channel), chosen.head


def select_trial(seen: JointProblem, unseen: Graph, starts: list[Start]) -> Trial:
    """The fit to go on with: with features, with less of their say, or without."""
    best, shuffled = _with_features(seen, unseen, starts)
    without = _without_features(seen, unseen, starts)
    lead = min(ahead(best, other, unseen) for other in (shuffled, without))
    if lead <= CLEARLY and (longer := _longest_search(seen, unseen, starts)) is not None:
        if ahead(without, longer, unseen) <= CLEARLY:
            without = longer
        lead = min(lead, ahead(best, without, unseen))
    if ahead(best, without, unseen) < -CLEARLY:
        return without
    tells = explains_more(best, shuffled, seen.graph)
    if _says_something(without, seen, unseen, starts[0][1]):  # else features are all there is
        tells = tells or _tells(seen, best.head, without.state)
        if lead <= CLEARLY and not tells:
            return without
    if tells and _neighbours(seen).show(best.state.targets.classes, best.state.targets.perceived):
        return best
    return _as_perceived(seen, unseen, best)


def _as_perceived(seen: JointProblem, unseen: Graph, best: Trial) -> Trial:
    """The same where features know too little to say that people err: without T, or with a T that
    is not read as people's mistakes."""
    unread = replace(best, state=as_perceived(best.state), head=PerceivedHead(best.head))
    perceived = in_known_order(best.state.targets.perceived, seen.graph.known)
    begun = (perceived, best.state.channel), best.start
    without = (tried(seen, unseen, PriorHead(best.head), start) for start in begun)
    return most_telling([unread, *without], unseen)


def _with_features(seen: JointProblem, unseen: Graph, starts: list[Start]) -> tuple[Trial, Trial]:
    """All starts with the stiffest head, and all heads from the best of these; all starts with the
    most flexible one, too. The best of all, and the same with the features of other items."""
    heads = seen.heads()
    gaussian = [head for head in heads if isinstance(head, GaussianHead)]
    starts = distinct(starts)
    best = most_telling([tried(seen, unseen, gaussian[0], one) for one in starts], unseen)
    start = best.start
    networks = [tried(seen, unseen, head, start) for head in heads[len(gaussian) :]]
    at_once = most_telling([tried(seen, unseen, gaussian[-1], one) for one in starts], unseen)
    best = _loosened(seen, unseen, best, gaussian[1:])
    near = _neighbours(seen)
    for other in (at_once, *networks):
        # What foretells people better may have learned their mistakes.
        one, two = best.state.targets, other.state.targets
        mistakes = near.prefers(one.classes, two.classes, two.perceived)
        mended = near.prefers(two.classes, one.classes, one.perceived)
        better = is_better(other, best, unseen) and not mistakes
        if better or (ahead(other, best, unseen) > -CLEARLY and mended):
            best = other
    order = torch.randperm(seen.graph.n_items, generator=seen.generator).to(seen.graph.device)
    way = gaussian if isinstance(best.head, GaussianHead) else [best.head]
    first, *looser = (ShuffledHead(head, order) for head in way)
    shuffled = tried(seen, unseen, first, start)
    return best, _loosened(seen, unseen, shuffled, looser)


def _loosened(seen: JointProblem, unseen: Graph, best: Trial, heads: Sequence[Head]) -> Trial:
    """The same with less and less stiff heads, each begun from the classes that the one before
    found (a continuation method, Allgower & Georg 1990), as long as these foretell as well.

    A flexible head that begins from what people see learns their mistakes as classes; one that
    begins from what a stiff head has mended keeps that, and tells more finely where classes end.
    """
    for head in heads:
        other = tried(seen, unseen, head, (best.state.targets.classes.float(), best.state.channel))
        if not is_better(other, best, unseen):
            break
        best = other
    return best


def _neighbours(problem: JointProblem) -> Neighbours:
    assert problem.features is not None
    return nearest_neighbours(problem.features.points.cpu().numpy())


def _without_features(seen: JointProblem, unseen: Graph, starts: list[Start]) -> Trial:
    """EM from all starts by judgements alone, or a start as it was found."""
    stiff = seen.heads()[0]
    trials = [tried(seen, unseen, FlatHead(stiff), start) for start in distinct(starts)]
    best = most_telling(trials, unseen)
    if isinstance(seen.graph, SortGraph):
        return best
    by_judgements = [find for find in promising_starts(seen) if find not in BY_FEATURES]
    found = _as_found(seen, unseen, starts, by_judgements)
    if not found:
        return best
    likeliest = max(found, key=lambda trial: trial.state.evidence)
    lead = ahead(likeliest, best, unseen)
    # Its groups by the same channel: one that EM has refined would speak for them.
    groups = as_found(seen, (best.state.targets.perceived, starts[likeliest.number][1]))
    likelier = likeliest.state.evidence > groups.evidence - A_NAT
    return likeliest if lead > CLEARLY or (lead > -CLEARLY and likelier) else best


def _as_found(
    seen: JointProblem, unseen: Graph, starts: list[Start], wanted: Sequence[StartFunction]
) -> list[Trial]:
    """Trials of those starts that are ``wanted``, each as it was found, without EM."""
    stiff = seen.heads()[0]
    return [
        replace(tried(seen, unseen, AsFoundHead(stiff), starts[number]), number=number)
        for number, find in enumerate(promising_starts(seen))
        if find in wanted
    ]


def _longest_search(seen: JointProblem, unseen: Graph, starts: list[Start]) -> Trial | None:
    """Groups by the longest search over partitions: the result where features say nothing.

    It takes as long as all else together, so it is tried only where they say little.
    """
    searched = promising_starts(seen)
    if isinstance(seen.graph, SortGraph) or from_partition not in searched:
        return None
    number = searched.index(from_partition)
    belief, _ = from_partition(seen, starts[number][1], thorough=True)
    start = in_known_order(belief, seen.graph.known), starts[number][1]
    found = tried(seen, unseen, AsFoundHead(seen.heads()[0]), start)
    return replace(found, number=number)


def _says_something(trial: Trial, seen: JointProblem, unseen: Graph, channel: Channel) -> bool:
    """Whether it foretells unseen judgements clearly better than people's rates of "same" do, or
    explains the seen ones so much better that this pays for naming every item's class (the
    two-part code of minimum description length, Rissanen 1978)."""
    if isinstance(seen.graph, SortGraph):
        return True
    belief = trial.state.targets.perceived
    flat = torch.full_like(belief, 1 / seen.n_classes)
    channel = channel.update(edge_statistics(guess(flat), seen.graph, channel))
    nothing = by_pair(answer_log_likelihood(flat, unseen, channel).double(), unseen)
    if ahead(trial, replace(trial, scores=nothing), unseen) > CLEARLY:
        return True
    explained, before = (
        float(answer_log_likelihood(b, seen.graph, own).double().sum())
        for b, own in ((belief, trial.state.channel), (flat, channel))
    )
    ends = torch.cat([seen.graph.left, seen.graph.right])
    judged = int((torch.bincount(ends) > 0).sum())
    return explained - before > judged * float(entropy(belief.mean(0)))


def _tells(problem: JointProblem, head: Head, alone: State) -> bool:
    """Whether features foretell, out of fold, a good part of what judgements say of an item.

    Of what the judgements say without features: EM's own classes have been shaped by these. Asked
    where both foretell unseen judgements alike: features then decide only what people mistake.
    """
    judged = alone.targets.judged
    folds = fold_of_items(len(judged), problem.options.folds, problem.generator).to(judged.device)
    found = head.crossfit(
        first_targets(alone.targets.perceived), alone.transition, folds, problem.generator
    )
    log_g = torch.log_softmax(found, dim=1)
    transition, _, _ = likelihood_transition(log_g.double(), judged, head.temperatures)
    share = alone.targets.perceived.mean(0)
    unknown = torch.log((share * judged).sum(1).clamp_min(TINY))
    gain = judged_score(log_g, transition, judged) - unknown
    return bool(float(gain.mean()) > GOOD_PART * float(entropy(share)))
