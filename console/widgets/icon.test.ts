import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { PAGE_ICONS } from '../api/page-icons.ts';
import { Icon, isIconName } from './icon.tsx';

test('every icon that a page may be marked with is drawn, and no two alike', () => {
  const drawn = PAGE_ICONS.filter(isIconName).map(name => renderToStaticMarkup(createElement(Icon, { name })));
  expect(drawn.filter(svg => /<path d="[^"]{8,}"/.test(svg))).toHaveLength(PAGE_ICONS.length);
  expect(new Set(drawn).size).toBe(PAGE_ICONS.length);
});
