import { del, get, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { TestResult } from '../schema/gateway.ts';
import { Locale, TemplateKey } from '../schema/send.ts';
import { NewTemplate, Preview, PreviewRequest, SendTest, Template, TemplateId, TemplateWords } from '../schema/template.ts';

const ofKey = { key: TemplateKey };
const ofTemplate = { template_id: TemplateId };

const administered = { gate: 'post:admin', env: 'target' } as const;

/** The words of messages (G-POST-06). */
export const templateRoutes = {
  listTemplates: get('/v1/templates', {
    summary: 'Templates of an environment, and those that services bring',
    ...administered,
    query: { key: Type.Optional(Type.String({ title: 'Key begins with', maxLength: 200 })), locale: Type.Optional(Locale), ...PageQuery },
    returns: Page(Template),
  }),
  putTemplate: put('/v1/templates/{key}', {
    params: ofKey,
    ifMatch: true,
    summary: 'Write a template',
    ...administered,
    body: TemplateWords,
    returns: Template,
    problems: ['template_invalid'],
  }),
  addTemplate: post('/v1/templates', {
    ifMatch: true,
    summary: 'Write a template',
    ...administered,
    body: NewTemplate,
    returns: Template,
    problems: ['template_invalid'],
    hidden: true,
  }),
  deleteTemplate: del('/v1/templates/{key}', {
    params: ofKey,
    ifMatch: true,
    summary: 'Remove a template',
    ...administered,
    query: { locale: Type.Optional(Locale) },
    problems: ['template_not_found'],
  }),
  dropTemplate: post('/v1/templates/{template_id}/drop', {
    params: ofTemplate,
    ifMatch: true,
    summary: 'Back to the words of the service',
    ...administered,
    returns: Type.Object({ ok: Type.Boolean() }),
    problems: ['template_not_found'],
    hidden: true,
  }),
  previewTemplate: post('/v1/templates/preview', {
    summary: 'Show what a template says',
    ...administered,
    body: PreviewRequest,
    returns: Preview,
    problems: ['template_invalid', 'template_not_found'],
  }),
  showTemplate: get('/v1/templates/{template_id}/preview', {
    params: ofTemplate,
    summary: 'A template with sample values',
    ...administered,
    returns: Preview,
    problems: ['template_invalid', 'template_not_found'],
    hidden: true,
  }),
  sendTemplate: post('/v1/templates/{template_id}/send-test', {
    params: ofTemplate,
    summary: 'Send a test',
    ...administered,
    body: SendTest,
    returns: TestResult,
    problems: ['template_not_found', 'recipient_invalid'],
  }),
} as const;
