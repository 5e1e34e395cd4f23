/** One fault of a manifest: a stable number, where, what, and what to do about it (house 8). */
export interface Finding {
  readonly id: string;
  readonly where: string;
  readonly what: string;
  readonly fix: string;
}

export type AddFinding = (id: string, where: string, what: string, fix: string) => void;

/** One line a person can act on. */
export const formatFinding = ({ id, where, what, fix }: Finding): string => `${id} ${where}   ${what}   ${fix}`;
