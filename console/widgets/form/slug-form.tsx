import { useState } from 'react';
import { Problem } from '../../api/gateway/problem.ts';
import type { SlugAnswer } from '../../api/registry-api.ts';
import { slugOf } from '../../shell/navigation/slug.ts';
import { FormAlert } from './form-alert.tsx';
import { useSlugVerdict, type Verdict } from './use-slug-verdict.ts';

interface SlugFormProps {
  what: string;
  label: string;
  /** Shows what the slug becomes part of. */
  example(slug: string): string;
  check(slug: string, signal: AbortSignal): Promise<SlugAnswer>;
  create(body: { slug: string; display_name: string }): Promise<void>;
}

const SAID = {
  idle: 'Derived from the name',
  checking: 'Checking…',
  free: 'Available',
  unknown: 'Could not be checked; creating will tell.',
};

/** A name and the slug that follows it until the slug is typed by hand. */
export function SlugForm({ what, label, example, check, create }: SlugFormProps) {
  const [name, setName] = useState('');
  const [typed, setTyped] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const slug = typed ?? slugOf(name);
  const { verdict, taken } = useSlugVerdict(slug, check);

  const submit = async (event: React.FormEvent) => {
    event.preventDefault();
    setProblem(undefined);
    setBusy(true);
    try {
      await create({ slug, display_name: name.trim() });
    } catch (error) {
      const failure = Problem.of(error);
      if (failure.code === 'slug_taken') taken();
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
      <SlugField slug={slug} verdict={verdict} example={example} type={setTyped} />
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

interface SlugFieldProps {
  slug: string;
  verdict: Verdict;
  example(slug: string): string;
  /** What is typed by hand; nothing where the slug follows the name again. */
  type(slug: string | undefined): void;
}

function SlugField({ slug, verdict, example, type }: SlugFieldProps) {
  return (
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
        onChange={event => type(event.target.value === '' ? undefined : event.target.value.toLowerCase())}
      />
      <p id="slug-verdict" className={verdict.state === 'refused' ? 'fault' : 'sub'} role="status" data-verdict={verdict.state}>
        {verdict.state === 'refused' ? verdict.text : SAID[verdict.state]}
      </p>
      <p id="slug-help" className="sub">
        {slug ? <code>{example(slug)}</code> : 'The slug becomes part of addresses.'} It cannot be changed later.
      </p>
    </div>
  );
}
