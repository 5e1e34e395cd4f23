import { useState } from 'react';
import { Icon } from '../widgets/icon.tsx';

/** Kept for as long as the page lives; nothing is stored. */
export function ThemeToggle() {
  const [theme, setTheme] = useState(
    () => document.documentElement.dataset['theme'] ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'),
  );
  const other = theme === 'dark' ? 'light' : 'dark';
  const toggle = () => {
    document.documentElement.dataset['theme'] = other;
    setTheme(other);
  };
  return (
    <button
      type="button"
      className="btn quiet icon"
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
      onClick={toggle}
    >
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </button>
  );
}
