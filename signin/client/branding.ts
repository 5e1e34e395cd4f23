export interface SafeBranding {
  readonly properties: Readonly<Record<string, string>>;
  readonly theme?: 'light' | 'dark';
  readonly logo?: string;
  readonly name?: string;
}

const COLOR = /^#[0-9a-f]{6}$/i;
const FONT = /^[\p{L}\p{N} ,'"_-]{1,160}$/u;

/** Only validated colours, fonts and a logo get through; `customCss` is not even looked at. */
export function safeBranding(answer: Readonly<Record<string, unknown>>): SafeBranding {
  const text = (name: string) => (typeof answer[name] === 'string' ? (answer[name] as string) : '');
  const properties: Record<string, string> = {};
  const primary = text('primary_color');
  if (COLOR.test(primary)) {
    properties['--accent'] = primary;
    properties['--on-accent'] = luminance(primary) > 0.179 ? '#000000' : '#ffffff';
  }
  const [back, ink] = [text('background_color'), text('text_color')];
  // A pair that nobody can read is no branding.
  if (COLOR.test(back) && COLOR.test(ink) && contrast(back, ink) >= 4.5) {
    properties['--surface'] = back;
    for (const name of ['--ink', '--ink-2', '--ink-3']) properties[name] = ink;
    properties['--link'] = COLOR.test(primary) && contrast(back, primary) >= 4.5 ? primary : ink;
  }
  if (FONT.test(text('font_family'))) properties['--font'] = `${text('font_family')}, system-ui, sans-serif`;
  const theme = text('theme_mode');
  const logo = text('logo_url');
  const name = text('display_name').trim();
  return {
    properties,
    ...(theme === 'light' || theme === 'dark' ? { theme } : {}),
    ...(/^(https:\/\/[^\s"'<>]+|\/(?!\/)[^\s"'<>]*)$/.test(logo) ? { logo } : {}),
    ...(name ? { name: name.slice(0, 80) } : {}),
  };
}

export function applyBranding({ properties, theme, logo, name }: SafeBranding): void {
  const root = document.documentElement;
  for (const [property, value] of Object.entries(properties)) root.style.setProperty(property, value);
  if (theme) root.dataset['theme'] = theme;
  if (name) for (const place of document.querySelectorAll('[data-brand-name]')) place.textContent = name;
  const slot = document.querySelector('[data-logo]');
  if (!logo || !slot) return;
  const image = new Image();
  image.alt = '';
  image.onload = () => slot.replaceChildren(image);
  image.src = logo;
}

function luminance(color: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map(at => {
    const c = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
