import { useEffect, useMemo, useState } from 'react';
import { Problem } from '../../api/gateway/problem.ts';
import type { SlugAnswer } from '../../api/registry-api.ts';
import { LatestOnly } from '../../shell/loading/latest-only.ts';
import { isSlug, slugOf } from '../../shell/navigation/slug.ts';
import { FormAlert } from './form-alert.tsx';

interface SlugFormProps {
  what: string;
  label: string;
  /** Shows what the slug becomes part of. */
  example(slug: string): string;
  check(slug: string, signal: AbortSignal): Promise<SlugAnswer>;
  create(body: { slug: string; display_name: string }): Promise<void>;
}

type Verdict = { state: 'idle' | 'checking' | 'free' | 'unknown' } | { state: 'refused'; text: string };

const REASONS = { taken: 'This slug is taken.', reserved: 'This slug is reserved.', invalid: 'This is not a valid slug.' };

/** A name and the slug that follows it until the slug is typed by hand. */
export function SlugForm({ what, label, example, check, create }: SlugFormProps) {
  const [name, setName] = useState('');
  const [typed, setTyped] = useState<string>();
  const [verdict, setVerdict] = useState<Verdict>({ state: 'idle' });
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const slug = typed ?? slugOf(name);
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

  const submit = async (event: React.FormEvent) => {
    event.preventDefault();
    setProblem(undefined);
    setBusy(true);
    try {
      await create({ slug, display_name: name.trim() });
    } catch (error) {
      const failure = Problem.of(error);
      if (failure.code === 'slug_taken') setVerdict({ state: 'refused', text: REASONS.taken });
      else setProblem(failure);
      setBusy(false);
    }
  };
  const ready = name.trim() !== '' && (verdict.state === 'free' || verdict.state === 'unknown');
  return (
    <form className="stack form" onSubmit={submit}>
      <div className="field">
        <label className="label" htmlFor="name">
          {label}
        </label>
        <input
          id="name"
          className="input"
          value={name}
          maxLength={120}
          autoComplete="off"
          autoFocus
          onChange={event => setName(event.target.value)}
        />
      </div>
      <div className="field">
        <label className="label" htmlFor="slug">
          Slug
        </label>
        <input
          id="slug"
          className="input mono"
          value={slug}
          maxLength={40}
          spellCheck={false}
          autoCapitalize="none"
          autoComplete="off"
          aria-describedby="slug-verdict slug-help"
          aria-invalid={verdict.state === 'refused' || undefined}
          onChange={event => setTyped(event.target.value === '' ? undefined : event.target.value.toLowerCase())}
        />
        <p id="slug-verdict" className={verdict.state === 'refused' ? 'fault' : 'sub'} role="status" data-verdict={verdict.state}>
          {verdict.state === 'refused'
            ? verdict.text
            : verdict.state === 'checking'
              ? 'Checking…'
              : verdict.state === 'free'
                ? 'Available'
                : verdict.state === 'unknown'
                  ? 'Could not be checked; creating will tell.'
                  : 'Derived from the name'}
        </p>
        <p id="slug-help" className="sub">
          {slug ? <code>{example(slug)}</code> : 'The slug becomes part of addresses.'} It cannot be changed later.
        </p>
      </div>
      {problem && <FormAlert problem={problem} />}
      <footer className="row end">
        <a className="btn" href="#/">
          Cancel
        </a>
        <button type="submit" className="btn primary" disabled={!ready || busy}>
          {busy ? 'Creating…' : `Create ${what}`}
        </button>
      </footer>
    </form>
  );
}
