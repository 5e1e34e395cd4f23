import type { TemplateDecl } from '@platform/sdk/contract';

/** What the registry's mails say unless an environment has words of its own. A link stands on a line of its own. */
export const templates = {
  invitation: {
    title: 'Somebody is invited to an organization',
    sample: {
      org_name: 'Example Ltd',
      email: 'ada@example.org',
      link: 'https://console.example.org/#/bootstrap?org=1&invitation=abc',
      ends_on: '2027-01-31',
    },
    words: {
      en: {
        subject: 'Invitation to {{org_name}}',
        body: 'You are invited to join {{org_name}}.\n\nOpen this link, sign in as {{email}} and accept:\n{{link}}\n\nThe invitation ends on {{ends_on}}. If you did not expect it, do nothing.\n',
      },
      de: {
        subject: 'Einladung zu {{org_name}}',
        body: 'Sie sind eingeladen, {{org_name}} beizutreten.\n\nÖffnen Sie diesen Link, melden Sie sich als {{email}} an und nehmen Sie an:\n{{link}}\n\nDie Einladung gilt bis {{ends_on}}. Wenn Sie sie nicht erwartet haben, tun Sie nichts.\n',
      },
      ar: {
        subject: 'دعوة إلى {{org_name}}',
        body: 'أنت مدعو للانضمام إلى {{org_name}}.\n\nافتح هذا الرابط وسجّل الدخول بالعنوان {{email}} واقبل الدعوة:\n{{link}}\n\nتنتهي الدعوة في {{ends_on}}. إذا لم تكن تتوقعها فلا تفعل شيئًا.\n',
      },
    },
  },
} as const satisfies Readonly<Record<string, TemplateDecl>>;
