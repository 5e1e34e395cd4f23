import { type Static, Type } from '@platform/sdk/contract';

const PLATFORM = Type.Literal('default', { title: 'As the platform does' });
const OnOff = Type.Union([PLATFORM, Type.Literal('on'), Type.Literal('off')]);
const Rate = Type.Integer({ minimum: 1, maximum: 1_000_000 });

/** What an environment asks of the ingress. Titles and descriptions are what an operator reads beside the choice (G-PROXY-06). */
export const ChosenSettings = Type.Object({
  waf_mode: Type.Union(
    [
      PLATFORM,
      Type.Literal('off', { title: 'Off' }),
      Type.Literal('detect', { title: 'Detect: findings are recorded, requests pass' }),
      Type.Literal('block', { title: 'Block: findings are recorded, requests are refused' }),
    ],
    { title: 'Screening', description: 'For SQL injection, cross-site scripting and path traversal. Begin with Detect.' },
  ),
  waf_large_bodies: {
    ...OnOff,
    title: 'Large bodies',
    description: 'Whether bodies of more than 64 KiB are screened to their end; without it, how they begin is.',
  },
  rate_limit: {
    ...OnOff,
    title: 'Rate limit',
    description: 'Whether the requests of one address are limited; an IPv6 address counts as its /64.',
  },
  rate_limit_rps: Type.Optional({
    ...Rate,
    title: 'Requests per second of one address',
    description: 'Twice as many may come at once. Empty: as the platform does.',
  }),
});
export type ChosenSettings = Static<typeof ChosenSettings>;

/** The same, with what holds where the environment leaves it to the platform. */
export const SettingsSeen = Type.Object({
  ...ChosenSettings.properties,
  in_force: Type.Object({
    waf_mode: Type.Union([Type.Literal('off'), Type.Literal('detect'), Type.Literal('block')]),
    waf_large_bodies: Type.Boolean(),
    rate_limit: Type.Boolean(),
    rate_limit_rps: Type.Integer(),
  }),
});
export type SettingsSeen = Static<typeof SettingsSeen>;
