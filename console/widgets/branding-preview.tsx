import type { CSSProperties } from 'react';
import type { Branding } from '../api/registry-api.ts';

const COLOR = /^#[0-9a-f]{6}$/i;

/** A sign-in card in the colours that would apply. */
export function BrandingPreview({ branding }: { branding: Branding }) {
  const color = (value: string | null | undefined, otherwise: string) => (value && COLOR.test(value) ? value : otherwise);
  const primary = color(branding.primary_color, '#0f766e');
  const style = {
    '--p-primary': primary,
    '--p-on': ink(primary),
    '--p-back': color(branding.background_color, branding.theme_mode === 'dark' ? '#14181d' : '#ffffff'),
    '--p-text': color(branding.text_color, branding.theme_mode === 'dark' ? '#e7eaef' : '#14181f'),
    fontFamily: branding.font_family || undefined,
  } as CSSProperties;
  return (
    <div className="brand-preview" style={style} role="img" aria-label="Preview of a sign-in page with this branding">
      {branding.logo_url?.startsWith('https://') ? <img src={branding.logo_url} alt="" height="28" /> : <span className="brand-mark" />}
      <strong>Sign in</strong>
      <span className="brand-line" />
      <span className="brand-line" />
      <span className="brand-button">Continue</span>
    </div>
  );
}

/** Black or white, whichever reads better on a colour. */
function ink(color: string): string {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map(at => {
    const c = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
}
