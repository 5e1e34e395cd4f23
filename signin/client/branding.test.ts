import { expect, test } from 'vitest';
import { safeBranding } from './branding.ts';
import { clientAddress, ownPath } from './destination.ts';

test('SGN-031 colours, font and logo override the page', () => {
  expect(
    safeBranding({
      primary_color: '#ffcc00',
      background_color: '#201030',
      text_color: '#ffffff',
      font_family: "Georgia, 'Times New Roman'",
      logo_url: 'https://cdn/x.svg',
      theme_mode: 'dark',
      display_name: ' Acme ',
    }),
  ).toEqual({
    properties: {
      '--accent': '#ffcc00',
      '--on-accent': '#000000',
      '--surface': '#201030',
      '--ink': '#ffffff',
      '--ink-2': '#ffffff',
      '--ink-3': '#ffffff',
      '--link': '#ffcc00',
      '--font': "Georgia, 'Times New Roman', system-ui, sans-serif",
    },
    theme: 'dark',
    logo: 'https://cdn/x.svg',
    name: 'Acme',
  });
});

test('SGN-025 customCss and whatever is not a plain value have no effect', () => {
  expect(
    safeBranding({
      customCss: 'body{}',
      primary_color: 'red;}',
      font_family: 'x;}body{',
      logo_url: 'javascript:alert(1)',
      theme_mode: 'x',
      background_color: '#ffffff',
      text_color: '#eeeeee',
    }),
  ).toEqual({ properties: {} });
});

test('an answer cannot lead to another host', () => {
  const origin = 'https://auth.x';
  expect(
    ['/oauth/authorize?a=1', '//evil', '/\\evil', 'https://evil', 'javascript:x', undefined].map(next => ownPath(next, origin)),
  ).toEqual(['/oauth/authorize?a=1', undefined, undefined, undefined, undefined, undefined]);
});

test('an authorization ends at the web or at the application’s own scheme', () => {
  const at = (to: string, own?: string) => clientAddress(to, 'https://auth.x', own);
  expect(at('https://app/cb?code=1')).toBe('https://app/cb?code=1');
  expect(at('myapp://cb?code=1', 'myapp://cb')).toBe('myapp://cb?code=1');
  expect([at('myapp://cb'), at('javascript:alert(1)', 'javascript:alert(1)')]).toEqual([undefined, undefined]);
});
