import { useEffect, useMemo, useState } from 'react';
import type { SlugAnswer } from '../../api/registry-api.ts';
import { LatestOnly } from '../../shell/loading/latest-only.ts';
import { isSlug } from '../../shell/navigation/slug.ts';

export type Verdict = { state: 'idle' | 'checking' | 'free' | 'unknown' } | { state: 'refused'; text: string };

const REASONS = { taken: 'This slug is taken.', reserved: 'This slug is reserved.', invalid: 'This is not a valid slug.' };

/** Whether a slug may be taken, asked again whenever it changes; and how to say that the create itself found it taken. */
export function useSlugVerdict(slug: string, check: (slug: string, signal: AbortSignal) => Promise<SlugAnswer>) {
  const [verdict, setVerdict] = useState<Verdict>({ state: 'idle' });
  const question = useMemo(() => new LatestOnly(check), [check]);
  useEffect(() => {
    if (!slug) {
      question.cancel();
      return setVerdict({ state: 'idle' });
    }
    if (!isSlug(slug)) {
      question.cancel();
      return setVerdict({
        state: 'refused',
        text: 'Use 3 to 40 lower-case letters, digits and hyphens, starting with a letter and not ending with a hyphen.',
      });
    }
    setVerdict({ state: 'checking' });
    question.ask(
      slug,
      ({ available, reason }) => setVerdict(available ? { state: 'free' } : { state: 'refused', text: REASONS[reason ?? 'taken'] }),
      // Whether it is free is also decided by the create itself.
      () => setVerdict({ state: 'unknown' }),
    );
    return () => question.cancel();
  }, [slug, question]);

  return { verdict, taken: () => setVerdict({ state: 'refused', text: REASONS.taken }) };
}
