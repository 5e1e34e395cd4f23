import { useState } from 'react';
import type { Column } from '../../api/page-def.ts';
import { DetailList } from '../value/detail-list.tsx';
import { Dialog } from '../dialog/dialog.tsx';

/** Opens what a row shows of itself beyond its columns. */
export function RowDetail({ row, fields }: { row: unknown; fields: readonly Column[] }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="btn quiet small" onClick={() => setOpen(true)}>
        Details
      </button>
      {open && (
        <Dialog title="Details" close={() => setOpen(false)} wide>
          <DetailList of={row} fields={fields} />
        </Dialog>
      )}
    </>
  );
}
