import type { Conflict, RefusedForm } from '../../lib/pages/console/conflicts.ts'
import type { Desk, Refused } from './page.ts'
import { readTyped } from './people.ts'

/** What the form of a refused change has typed beside what is stored by now, where the two differ. @param stored the texts of its fields */
function findConflicts ({ isConflict, typed: fields }: Refused, stored: Readonly<Record<string, string>>): Conflict[] {
  if (!isConflict) return []
  return Object.entries(stored).flatMap(([label, now]) => {
    const typed = fields.get(label)?.trim().replaceAll('\r\n', '\n')
    return typed === undefined || typed === now ? [] : [{ label, now, typed }]
  })
}

/** The form that was refused, for the page that is shown again. @param stored the texts of the fields that forms of the page change */
export function toRefusedForm ({ refused }: Pick<Desk, 'refused'>, stored: Readonly<Record<string, string>>): RefusedForm | undefined {
  return refused && { action: refused.action, typed: readTyped(refused.typed), conflicts: findConflicts(refused, stored) }
}
