import { useState } from 'react';
import { Icon } from '../icon.tsx';

/** Code with a button that copies it; with `href` the code leads somewhere. */
export function CopyableCode({ text, label, href }: { text: string; label: string; href?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1600);
  };
  return (
    <span className="copyable">
      {href ? (
        <a href={href} title={`Everything with this ${label}`}>
          <code className="cut">{text}</code>
        </a>
      ) : (
        <code>{text}</code>
      )}
      <button
        type="button"
        className="btn quiet icon tiny"
        onClick={copy}
        aria-label={copied ? 'Copied' : `Copy ${label}`}
        title={copied ? 'Copied' : `Copy ${label}`}
      >
        <Icon name={copied ? 'check' : 'copy'} />
      </button>
    </span>
  );
}
