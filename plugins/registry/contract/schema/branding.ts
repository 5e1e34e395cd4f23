import { type Static, Type } from '@platform/sdk/contract';

const Colour = Type.Union([Type.String({ pattern: '^(#[0-9a-fA-F]{6})?$' }), Type.Null()]);
const text = (maxLength: number) => Type.Union([Type.String({ maxLength }), Type.Null()]);
/** G-SYS-09: empty or null means not set. */
export const BRANDING_FIELDS = [
  'primary_color',
  'secondary_color',
  'background_color',
  'text_color',
  'font_family',
  'logo_url',
  'theme_mode',
  'custom_css',
] as const;
export const Branding = Type.Object({
  primary_color: Type.Optional(Colour),
  secondary_color: Type.Optional(Colour),
  background_color: Type.Optional(Colour),
  text_color: Type.Optional(Colour),
  font_family: Type.Optional(text(200)),
  logo_url: Type.Optional(Type.Union([Type.String({ pattern: '^(https://.{1,500})?$' }), Type.Null()])),
  theme_mode: Type.Optional(
    Type.Union([Type.Literal('light'), Type.Literal('dark'), Type.Literal('system'), Type.Literal(''), Type.Null()]),
  ),
  custom_css: Type.Optional(text(20_000)),
});
export type Branding = Static<typeof Branding>;
export const MergedBranding = Type.Object({
  ...Branding.properties,
  sources: Type.Record(Type.String(), Type.Union([Type.Literal('org'), Type.Literal('env'), Type.Literal('default')])),
});
