/*
 * One rolling upgrade, as a value (SUP-038 to SUP-046). Two instances of one service: the old one, and the next one that takes its place.
 *
 *   starting → spawned → active → stable → draining → complete
 *        └───────┴─────────┴→ aborted       └→ rolled_back
 *
 * The old one goes on serving until the registry says that it is no longer in turn and every router has had time to see that; only then is
 * it told to end, and only from then on does it refuse work. Every stage has a deadline: an upgrade always ends.
 */

export interface UpgradeSettings {
  /** Until the next one is Active (SUP-039). */
  readonly activeMs: number;
  /** The window after that (SUP-040), and the one under load after the old one is gone (SUP-042). */
  readonly stableMs: number;
  /** Until the registry has taken that the old one is out of turn: it may be away. */
  readonly toldMs: number;
  /** Until routers have seen that the old one is out of turn: their memory of two seconds, and one more. */
  readonly seenMs: number;
  /** At most so long until nothing is under way on the old one (SUP-041). */
  readonly drainMs: number;
  /** More errors than this share of what the next one answered are too many (G-CAP-10). */
  readonly errorShare: number;
}

export const UPGRADE_SETTINGS: UpgradeSettings = {
  activeMs: 120_000,
  stableMs: 60_000,
  toldMs: 60_000,
  seenMs: 3_000,
  drainMs: 30_000,
  errorShare: 0.05,
};

export type UpgradePhase = 'starting' | 'spawned' | 'active' | 'stable' | 'draining' | 'complete' | 'aborted' | 'rolled_back';
/** What it waits for; finer than the phase that is published. */
export type UpgradeStage = 'starting' | 'active' | 'told' | 'seen' | 'quiet' | 'ending' | 'under_load' | 'over';

export interface Upgrade {
  readonly phase: UpgradePhase;
  readonly stage: UpgradeStage;
  /** The old one died meanwhile: there is nothing to drain, and nothing to go back to. */
  readonly oldGone: boolean;
  readonly reason: string | undefined;
}

export type UpgradeEvent =
  | { readonly type: 'begin' | 'spawned' | 'active' | 'timer' | 'told' | 'quiet' | 'old_ended' | 'old_lost' }
  | { readonly type: 'abort' | 'rollback' | 'next_lost' | 'next_unwell' | 'errors'; readonly reason: string };

export type UpgradeEffect =
  | { readonly do: 'start_next' | 'stop_next' | 'drain_old' | 'resume_old' | 'stop_old' | 'release_old' | 'release_next' | 'disarm' }
  /** The next one takes over the release of the old one: that one is gone. */
  | { readonly do: 'return_next' }
  | { readonly do: 'arm'; readonly ms: number }
  | { readonly do: 'tell'; readonly phase: UpgradePhase; readonly percent: number; readonly message: string };

export interface UpgradeStep {
  readonly upgrade: Upgrade;
  readonly effects: readonly UpgradeEffect[];
}

export const NEW_UPGRADE: Upgrade = { phase: 'starting', stage: 'starting', oldGone: false, reason: undefined };

const to = (upgrade: Upgrade, ...effects: readonly UpgradeEffect[]): UpgradeStep => ({ upgrade, effects });
const tell = (phase: UpgradePhase, percent: number, message: string): UpgradeEffect => ({ do: 'tell', phase, percent, message });

export function stepUpgrade(upgrade: Upgrade, event: UpgradeEvent, settings: UpgradeSettings): UpgradeStep {
  if (upgrade.stage === 'over') return to(upgrade);
  switch (event.type) {
    case 'begin':
      return to(
        upgrade,
        { do: 'arm', ms: settings.activeMs },
        tell('starting', 5, 'A port is reserved; the next instance is being prepared'),
        { do: 'start_next' },
      );
    case 'spawned':
      return upgrade.phase === 'starting'
        ? to({ ...upgrade, phase: 'spawned' }, tell('spawned', 15, 'The next instance starts'))
        : to(upgrade);
    case 'old_lost':
      return upgrade.stage === 'ending'
        ? underLoad(upgrade, settings)
        : isOutOfTurn(upgrade)
          ? underLoad({ ...upgrade, oldGone: true }, settings)
          : to({ ...upgrade, oldGone: true });
    case 'active':
      return upgrade.stage === 'starting'
        ? to(
            { ...upgrade, phase: 'active', stage: 'active' },
            { do: 'arm', ms: settings.stableMs },
            tell('active', 25, 'The next instance is in turn; it is watched'),
          )
        : to(upgrade);
    case 'told':
      return upgrade.stage === 'told'
        ? to(
            { ...upgrade, stage: 'seen' },
            { do: 'arm', ms: settings.seenMs },
            tell('draining', 60, 'Routers are told to leave the old instance'),
          )
        : to(upgrade);
    case 'quiet':
      return upgrade.stage === 'quiet' ? endOld(upgrade, settings) : to(upgrade);
    case 'old_ended':
      return upgrade.stage === 'ending' ? underLoad(upgrade, settings) : to(upgrade);
    case 'timer':
      return late(upgrade, settings);
    default:
      return fail(upgrade, event.reason);
  }
}

function late(upgrade: Upgrade, settings: UpgradeSettings): UpgradeStep {
  switch (upgrade.stage) {
    case 'starting':
      return fail(upgrade, `the next instance was not Active in ${settings.activeMs / 1_000} s`);
    case 'active':
      if (upgrade.oldGone) return underLoad({ ...upgrade, phase: 'stable' }, settings);
      return to(
        { ...upgrade, phase: 'draining', stage: 'told' },
        tell('stable', 55, 'The next instance is stable'),
        { do: 'arm', ms: settings.toldMs },
        { do: 'drain_old' },
      );
    case 'told':
      return fail(upgrade, `the registry did not take in ${settings.toldMs / 1_000} s that the old instance is out of turn`);
    case 'seen':
      return to(
        { ...upgrade, stage: 'quiet' },
        { do: 'arm', ms: settings.drainMs },
        tell('draining', 65, 'The old instance finishes what is under way'),
      );
    case 'quiet':
      return endOld(upgrade, settings);
    case 'ending':
      // Its own deadlines end it; this one is there so that no upgrade waits for ever.
      return underLoad(upgrade, settings);
    default:
      return to(
        { ...upgrade, phase: 'complete', stage: 'over' },
        { do: 'disarm' },
        { do: 'release_next' },
        tell('complete', 100, 'The upgrade is complete'),
      );
  }
}

const isOutOfTurn = ({ stage }: Upgrade): boolean => stage === 'told' || stage === 'seen' || stage === 'quiet';

const endOld = (upgrade: Upgrade, settings: UpgradeSettings): UpgradeStep =>
  to({ ...upgrade, stage: 'ending' }, { do: 'arm', ms: settings.drainMs + 60_000 }, tell('draining', 75, 'The old instance ends'), {
    do: 'stop_old',
  });

const underLoad = (upgrade: Upgrade, settings: UpgradeSettings): UpgradeStep =>
  to(
    { ...upgrade, stage: 'under_load', oldGone: true },
    // One that died by itself is no longer wanted either.
    ...(upgrade.stage === 'ending' ? [] : [{ do: 'stop_old' } as const]),
    { do: 'arm', ms: settings.stableMs },
    tell(upgrade.phase, 80, 'The old instance is gone; the next one is watched under load'),
  );

/** Before the old one lost its turn this is an abort, after that a rollback (SUP-043, SUP-044). */
function fail(upgrade: Upgrade, reason: string): UpgradeStep {
  const over = (phase: 'aborted' | 'rolled_back', ...effects: readonly UpgradeEffect[]) =>
    to({ ...upgrade, phase, stage: 'over', reason }, { do: 'disarm' }, ...effects, tell(phase, 100, reason));
  switch (upgrade.stage) {
    case 'starting':
    case 'active':
      return over('aborted', { do: 'stop_next' }, { do: 'release_old' });
    case 'told':
    case 'seen':
    case 'quiet':
      return over('rolled_back', { do: 'resume_old' }, { do: 'stop_next' }, { do: 'release_old' });
    default:
      return over('rolled_back', { do: 'return_next' });
  }
}
