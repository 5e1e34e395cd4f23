import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { expect, test } from 'vitest';
import { ConsoleState } from './console-context.ts';
import type { Place } from './navigation/place.ts';
import { Screen } from './screen.tsx';

/** What the page of a service that is switched off shows at first. */
const shown = (place: Partial<Place>) => {
  const services = [{ vertical: 'acme', service: 'orders', label: 'Orders', nav: [], pages: ['overview'] }];
  const value = { services, features: { orders: false }, place, registry: { read: async () => ({}) } } as never;
  const screen = createElement(Screen, { route: { name: 'page', service: 'orders', page: 'overview', props: {} } });
  return renderToString(createElement(ConsoleState, { value }, screen));
};

test('CON-018 CON-019 the feature map decides last: in an environment nothing is said to be off before the environment is there', () => {
  const off = 'Not enabled in this environment';
  expect([shown({}).includes(off), shown({ env: 'e' }).includes(off)]).toEqual([true, false]);
  expect(shown({ env: 'e' })).toContain('Loading');
});
