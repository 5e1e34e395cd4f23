import { type Static, Type } from '@platform/sdk/contract';
import { Locale, TemplateKey, Vars } from './send.ts';

/** Its key and its language: `shop.paid:en`. */
export const TemplateId = Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,199}:[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$', maxLength: 236 });

/** G-POST-06; `origin` says whether the environment wrote it or the service that sends it brought it. */
export const Template = Type.Object({
  template_id: Type.String(),
  key: Type.String(),
  locale: Type.String(),
  subject: Type.String(),
  body: Type.String(),
  content_type: Type.Union([Type.Literal('text/plain'), Type.Literal('text/html')]),
  origin: Type.Union([Type.Literal('environment'), Type.Literal('service')]),
  title: Type.String(),
  version: Type.Integer(),
  updated_at: Type.Union([Type.String(), Type.Null()]),
});
export type Template = Static<typeof Template>;

const words = {
  locale: Locale,
  subject: Type.String({ minLength: 1, maxLength: 500 }),
  body: Type.String({
    minLength: 1,
    maxLength: 100_000,
    description: '{{name}} stands for a value. HTML is recognized by its tags; its values are escaped.',
  }),
};
export const TemplateWords = Type.Object(words);
export type TemplateWords = Static<typeof TemplateWords>;
/** The same with its key: what a form sends. */
export const NewTemplate = Type.Object({ key: TemplateKey, ...words });

export const PreviewRequest = Type.Object({
  key: Type.Optional(TemplateKey),
  locale: Type.Optional(Locale),
  subject: Type.Optional(Type.String({ maxLength: 500 })),
  body: Type.Optional(Type.String({ maxLength: 100_000 })),
  vars: Type.Optional(Vars),
});
export type PreviewRequest = Static<typeof PreviewRequest>;
export const Preview = Type.Object({
  subject: Type.String(),
  locale: Type.String(),
  rendered_from: Type.String(),
  text: Type.String(),
  html_light: Type.String(),
  html_dark: Type.String(),
  vars: Vars,
});
export type Preview = Static<typeof Preview>;
export const SendTest = Type.Object({
  recipient: Type.String({ minLength: 3, maxLength: 320, title: 'Send to' }),
  vars: Type.Optional(Vars),
});
export type SendTest = Static<typeof SendTest>;
