/**
 * Where an arrow key, Home or End leads in a list or a grid.
 *
 * @param {string} key as in KeyboardEvent.key.
 * @param {number} index from 0.
 * @param {number} count of items.
 * @param {number} columns of the grid; 1 for a list, in which all four arrows go by one.
 * @returns {number|null} the new index; null for another key and at the border.
 */
export function stepIndex(key, index, count, columns = 1) {
  const steps = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    ArrowUp: index - columns,
    ArrowDown: index + columns,
    Home: 0,
    End: count - 1,
  };
  const next = steps[key];
  return next === undefined || next < 0 || next >= count ? null : next;
}

/**
 * Let the arrow keys move the focus among items, of which one at a time is in the tab order.
 *
 * @param {Element} container around the items.
 * @param {HTMLElement[]} items in their order.
 * @param {number} columns as in `stepIndex`.
 * @param {number} first the item that is in the tab order at the beginning.
 */
export function rove(container, items, columns = 1, first = 0) {
  let current = first;
  const enter = (index) => {
    items[current].tabIndex = -1;
    items[index].tabIndex = 0;
    current = index;
  };
  items.forEach((item, index) => {
    item.tabIndex = index === first ? 0 : -1;
  });
  container.addEventListener("focusin", (event) => {
    const index = items.indexOf(event.target);
    if (index >= 0) {
      enter(index);
    }
  });
  container.addEventListener("keydown", (event) => {
    const index = items.indexOf(event.target);
    const next = index < 0 ? null : stepIndex(event.key, index, items.length, columns);
    if (next !== null) {
      event.preventDefault();
      items[next].focus();
    }
  });
}
