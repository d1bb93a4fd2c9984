(function () {
  "use strict";
  var form = document.getElementById("filter");
  if (!form) { return; }
  var text = document.getElementById("filter-text");
  var state = document.getElementById("filter-state");
  var told = document.getElementById("filter-told");
  var rows = Array.prototype.slice.call(document.querySelectorAll("[data-hosts]"));
  var facts = {};
  function names(row) { return row.getAttribute("data-hosts").split(" "); }
  rows.forEach(function (row) {
    var own = (row.getAttribute("data-facts") || "").split("|");
    if (row.tagName === "DETAILS") { names(row).forEach(function (name) { facts[name] = own; }); }
  });
  // The rule of --where: a word as a whole, and a number from the start of a version. See Where in result/facts.py.
  function has(fact, value) {
    var within = /[a-z]/.test(value) ? /[0-9a-z]/ : /[0-9a-z.-]/;
    for (var at = fact.indexOf(value); at >= 0; at = fact.indexOf(value, at + 1)) {
      if (!within.test(fact.charAt(at - 1)) && !/[0-9a-z]/.test(fact.charAt(at + value.length))) { return true; }
    }
    return false;
  }
  function matches(name, word) {
    var part = /^([a-z-]+)(!?)=(.+)$/.exec(word);
    var found = facts[name].some(function (fact) {
      var own = fact.slice(fact.indexOf("=") + 1);
      return part ? fact.indexOf(part[1] + "=") === 0 && has(own, part[3]) : own.indexOf(word) >= 0;
    });
    return part && part[2] ? !found && facts[name].length > 1 : found || name.indexOf(word) >= 0;
  }
  function update() {
    var choices = text.value.toLowerCase().split(",").map(function (choice) {
      return choice.split(/\s+/).filter(Boolean);
    }).filter(function (choice) { return choice.length; });
    var seen = 0, all = 0;
    rows.forEach(function (row) {
      var hits = names(row).filter(function (name) {
        return !choices.length || choices.some(function (choice) {
          return choice.every(function (word) { return matches(name, word); });
        });
      });
      var shown = hits.length > 0 && (!state.value || row.getAttribute("data-state") === state.value);
      row.hidden = !shown;
      if (row.tagName === "DETAILS") { all += names(row).length; seen += shown ? hits.length : 0; }
    });
    told.textContent = seen === all ? "all " + all + " hosts" : seen + " of " + all + " hosts";
  }
  function open() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") { target.open = true; target.hidden = false; }
  }
  form.addEventListener("input", update);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.querySelectorAll("[data-pick]").forEach(function (chip) {
    chip.addEventListener("click", function () { state.value = chip.getAttribute("data-pick"); update(); });
  });
  window.addEventListener("hashchange", open);
  form.hidden = false;
  update();
  open();
})();
