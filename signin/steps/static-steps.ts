import { html } from '../markup.ts';
import { pathWith } from '../oauth-context.ts';
import type { StepPage } from './step-page.ts';

const CODE = /^[a-z_]{1,64}$/;
const REFERENCE = /^[A-Za-z0-9._:-]{1,128}$/;

/** Says only what the catalog says: text from the address bar would let anybody speak in our name. */
export const error: StepPage = ({ m, query }) => {
  const code = CODE.test(query['error'] ?? '') ? (query['error'] as string) : undefined;
  const reference = REFERENCE.test(query['correlation_id'] ?? '') ? query['correlation_id'] : undefined;
  return {
    title: m.error,
    lead: (code && m.errors[code]) || m.error_text,
    body: html`${code && html`<p class="sub">${code}</p>`}${
      reference &&
      html`<p
      class="sub">${m.error_reference}: <code>${reference}</code></p>`
    }`,
    foot: query['client_id'] || query['uid'] ? html`<a href="${pathWith('/sign-in', query)}">${m.back_to_sign_in}</a>` : undefined,
  };
};

export const notFound: StepPage = ({ m }) => ({ title: m.not_found, lead: m.not_found_text, body: html`` });

export const passkeyEnroll: StepPage = ({ m }) => ({ title: m.passkey_enroll, lead: m.passkey_text, body: html`` });
export const passkeyVerify: StepPage = ({ m }) => ({ title: m.passkey_verify, lead: m.passkey_text, body: html`` });
