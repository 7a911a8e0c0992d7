import type { Decoys } from '../hashes/decoys.ts'

/** Forms of hashes that a run remembers having registered. */
const FORMS = 100

/**
 * Registers the forms of the hashes of a run one after the other, because all of them are in one record. A failure is not remembered.
 * @returns registers a form, and resolves to the one that stands for it
 */
export function createForms ({ register }: Pick<Decoys, 'register'>) {
  const forms = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()
  return async (form: string): Promise<string> => {
    const known = forms.get(form)
    if (known !== undefined) return known
    const registering = last.then(async () => {
      const registered = forms.get(form) ?? await register(form)
      if (forms.size < FORMS) forms.set(form, registered)
      return registered
    })
    last = registering.catch(() => {})
    return await registering
  }
}
