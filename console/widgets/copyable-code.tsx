import { useState } from 'react';
import { Icon } from './icon.tsx';

export function CopyableCode({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1600);
  };
  return (
    <span className="copyable">
      <code>{text}</code>
      <button type="button" className="btn quiet icon tiny" onClick={copy} aria-label={copied ? 'Copied' : `Copy ${label}`} title={copied ? 'Copied' : `Copy ${label}`}>
        <Icon name={copied ? 'check' : 'copy'} />
      </button>
    </span>
  );
}
