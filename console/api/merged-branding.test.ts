import { expect, test } from 'vitest';
import { mergeBranding } from './merged-branding.ts';

test('the preview merges as the registry does: a non-empty value of the environment wins, an emptied one inherits again', () => {
  const base = { primary_color: '#111111', font_family: 'Georgia', logo_url: '' };
  expect(mergeBranding(base, { primary_color: '#222222', font_family: '', theme_mode: 'dark' }, 'env')).toEqual({
    primary_color: '#222222',
    font_family: 'Georgia',
    theme_mode: 'dark',
    sources: { primary_color: 'env', font_family: 'org', theme_mode: 'env' },
  });
  expect(mergeBranding({}, { primary_color: null }, 'org')).toEqual({ sources: {} });
});
