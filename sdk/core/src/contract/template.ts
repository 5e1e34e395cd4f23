/** The words of one kind of message that a service sends, which environments may replace (G-POST-06). */
export interface TemplateDecl {
  /** When it is sent, in a few words. */
  readonly title: string;
  /** Values that a preview shows, by the names that stand between double braces. */
  readonly sample: Readonly<Record<string, string | number | boolean>>;
  /** By language, such as `en` or `pt-BR`; `en` is what everybody else reads. */
  readonly words: Readonly<Record<string, { readonly subject: string; readonly body: string }>>;
}
